"""What a rule says carries no argument out where content is off, however the rule puts it there."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import GovernedOutcome, agent_context
from agenttool_otel.policy.rule_words import texts_of
from agenttool_otel.testing import capture
from samples import one_in

VALUES = {
    "a text with sprintf": 'text := sprintf("no money to %v", [input.input.to])',
    "a part of the value": 'text := concat(" ", ["no", split(input.input.to, " ")[1]])',
    "in upper case": 'text := sprintf("not %s", [upper(input.input.to)])',
    "as base64": 'text := sprintf("not %s", [base64.encode(input.input.to)])',
    "deep inside": 'text := sprintf("not %v", [input.input.more.list[0].word])',
    "a number": 'text := sprintf("not %v", [input.input.number])',
}
FINDINGS = {
    "deny": 'deny contains {"rule": "acme.m", "message": text} if ',
    "ask": 'ask contains {"rule": "acme.m", "message": text} if ',
    "rule": 'deny contains {"rule": text, "message": "no"} if ',
}
WORDS = ("Quillfeather", "QUILLFEATHER", "UXVpbGxmZWF0aGVy", "zanzibarite", "48151623")


@pytest.mark.parametrize("finding", FINDINGS.values(), ids=FINDINGS.keys())
@pytest.mark.parametrize("name", one_in(3, VALUES))
def test_no_message_carries_an_argument_out(
    name: str, finding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.rego").write_text(
        f"package agenttool.custom.x\n\n{finding}{{\n\t{VALUES[name]}\n}}\n", "utf-8"
    )
    caplog.set_level(logging.DEBUG)
    refused = []
    with capture(extension=str(tmp_path), capture="NO_CONTENT") as captured:

        @captured.governor.govern(read_only=True, access_kinds=[])
        def pay(to: str, number: int, more: dict[str, Any]) -> str:
            """Pay."""
            return "paid"

        with agent_context(actor="agent:a", session_id="s"):
            try:
                pay("Ada Quillfeather", 48151623, {"list": [{"word": "zanzibarite"}]})
            except GovernedOutcome as outcome:
                refused.append(str(outcome))
        told = captured.span.to_json() + caplog.text + "".join(refused)
    assert refused
    assert [word for word in WORDS if word in told] == []


def test_a_rules_own_words_stay(tmp_path: Path) -> None:
    (tmp_path / "x.rego").write_text(
        "package agenttool.custom.x\n\n"
        'deny contains {"rule": "acme.m", "message": "no refund today"} if input.input.n > 1\n'
        'deny contains {"rule": "acme.n", "message": sprintf("limit %v of the desk", [5])} if input.input.n == 1\n',
        "utf-8",
    )
    with capture(extension=str(tmp_path), capture="NO_CONTENT") as captured:

        @captured.governor.govern(read_only=True, access_kinds=[])
        def refund(n: int, why: str) -> str:
            """Refund."""
            return "refunded"

        with agent_context(actor="agent:a", session_id="s"):
            with pytest.raises(GovernedOutcome, match="no refund today"):
                refund(2, "no refund today, the desk")
            with pytest.raises(GovernedOutcome, match="limit 5 of the desk"):
                refund(1, "desk")


def test_the_reason_of_an_offer_carries_no_argument_out(tmp_path: Path) -> None:
    offer = '{"tool": "local.pay_less", "arguments": {}, "reason": text}'
    (tmp_path / "x.rego").write_text(
        "package agenttool.custom.x\n\n"
        'ask contains {"rule": "acme.m", "message": "ask first", '
        f'"alternatives": [{offer}], "suggested_updates": [{{"type": "acme", "reason": text}}]}} if {{\n'
        '\ttext := sprintf("rather not to %v", [input.input.to])\n}\n',
        "utf-8",
    )
    with capture(extension=str(tmp_path), capture="NO_CONTENT") as captured:

        @captured.governor.govern(read_only=True, access_kinds=[])
        def pay(to: str) -> str:
            """Pay."""
            return "paid"

        with agent_context(actor="agent:a", session_id="s"):
            result = pay.tool.invoke({"to": "Ada Quillfeather"})
    assert result.permission is not None
    offers = (*result.permission["alternatives"], *result.permission["suggested_updates"])
    assert [one["reason"] for one in offers if "reason" in one] == ["rather not to [argument]"] * 2


def test_a_rule_is_named_though_an_argument_repeats_its_name() -> None:
    with capture(capture="NO_CONTENT") as captured:

        @captured.governor.govern(read_only=True, path_args=["path"], access_kinds=["file_read"])
        def read(path: str, why: str) -> str:
            """Read."""
            return "read"

        with agent_context(actor="agent:a", session_id="s"), pytest.raises(GovernedOutcome):
            read("/home/me/.ssh/id_rsa", "agenttool.rules.paths.sensitive")
        attributes = captured.span.attributes or {}
    assert attributes["agenttool.permission.rule"] == "agenttool.rules.paths.sensitive"


def test_texts_that_a_dot_joins_are_a_rules_own() -> None:
    texts = texts_of(None)
    assert texts.has("agenttool.rules.paths.sensitive")
    assert not texts.has("agenttool.rules.paths.Quillfeather")
    assert not texts.has("Quillfeather.sensitive")
