"""The examples in docs/policies.md are true."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import regorus
from stock_bundle import (
    EMBEDDED,
    REPOSITORY,
    call,
    data_document,
    modules,
    path_call,
    shell_call,
    stock,
    write_call,
)

TEXT = (REPOSITORY / "docs" / "policies.md").read_text("utf-8")
RULES, TESTS, HELD = re.findall(r"```rego\n(.*?)```", TEXT, re.DOTALL)
SETTINGS, DECISION, REDACTION = (
    json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
)


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_the_custom_rules_of_the_page_do_what_it_says(kind: type[Any]) -> None:
    engine = kind(custom={"agenttool/custom/freeze/freeze.rego": RULES})
    frozen, draft, other, key = engine.decide(
        [
            call(tool={"id": "deploy.web"}, session={"labels": {"freeze": "on"}}),
            write_call(lexical="/proj/a.draft"),
            write_call(),
            write_call(lexical="/proj/a.draft", sensitive="key"),
        ]
    )
    assert (frozen["behavior"], frozen["reason"]["rule_ref"]) == ("deny", "acme.freeze.deploys")
    assert (draft["behavior"], other["behavior"], key["behavior"]) == ("allow", "ask", "deny")


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_the_sandbox_of_the_page_is_obliged_where_it_holds(kind: type[Any]) -> None:
    engine = kind(custom={"agenttool/custom/held/held.rego": HELD})
    command = shell_call(read_only=False)
    nothing = {"sandboxes": [], "scope": "thread"}
    without, there = engine.decide(
        [
            {**command, "execution": nothing},
            {**command, "execution": {**nothing, "sandboxes": ["read"]}},
        ]
    )
    assert "sandbox" not in without["obligations"]
    assert there["obligations"]["sandbox"] == {"profile": "read"}
    assert "agenttool.rules.shell.not_read_only" in without["rule_refs"]


def test_the_test_of_the_page_passes() -> None:
    engine = regorus.Engine()
    for file, text in (*modules(tests=True), ("freeze.rego", RULES), ("freeze_test.rego", TESTS)):
        engine.add_policy(file, text)
    engine.add_data_json(data_document())
    assert engine.eval_rule("data.agenttool.custom_test.freeze.test_deployments_are_frozen") is True


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_the_settings_of_the_page_work(kind: type[Any]) -> None:
    written, outside = kind(SETTINGS).decide([write_call(), path_call(inside=False)])
    assert (written["behavior"], outside["behavior"]) == ("allow", "deny")
    [answer] = kind(REDACTION).decide([call(tool={"id": "crm.find"})])
    assert answer["obligations"] == {
        "redact_input": [],
        "redact_result": ["/customer/email"],
        "max_inline_chars": 20000,
        "persistence": "never_persist",
    }


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_the_decision_of_the_page_is_a_real_one(kind: type[Any]) -> None:
    assert stock(kind).decide([write_call()]) == [DECISION]


def test_every_concern_is_on_the_page() -> None:
    concerns = {file.split("/")[2] for file, _ in modules() if "/rules/" in file}
    assert len(concerns) == 15
    for concern in concerns:
        assert f"| `{concern}` |" in TEXT
