"""What the stock bundle decides, case by case, with the same document from every engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from stock_bundle import (
    DECISION,
    EMBEDDED,
    OBLIGATIONS,
    VISIBLE,
    Opa,
    call,
    fixture,
    merged,
    path_call,
    shell_call,
    sql_call,
    stock,
    url_call,
    write_call,
)

from agenttool_otel.policy.normalise import normalise
from agenttool_otel.policy.types import EngineAnswer

APPROVED = {"invocation": {"resumed": True}, "approval": fixture("approved")}


@dataclass
class Case:
    """One call and its answer."""

    name: str
    document: dict[str, Any]
    behavior: str
    rule: str
    settings: dict[str, Any] = field(default_factory=dict)


def _rm(*targets: str) -> dict[str, Any]:
    words = ["rm", "-rf", *targets]
    places = [
        {
            "word": target,
            "operation": "delete_tree",
            "covers": ["root"] if target in ("/", "/proj") else [],
            "path": {
                **fixture("path_fact"),
                "access": "write",
                "lexical": target,
                "resolved": target,
            },
        }
        for target in targets
    ]
    return {
        "read_only": False,
        "writes": True,
        "destructive": True,
        "commands": [
            {
                "name": "rm",
                "argv": words,
                "spellings": [words],
                "plain": words,
                "repository": None,
                "carries": False,
                "assignments": [],
                "redirects": [],
                "category": "tree_deleter",
                "directory": "/proj",
                "places": places,
                "complete": True,
                "unreviewed": [],
                "read_only": False,
                "reason": "",
            }
        ],
    }


UNSTATED = {
    "tool": {"read_only": False, "inferred": ["read_only", "destructive"]},
    "facts": {"paths": []},
}
STRICT = {"session": {"mode": "strict"}}
PLAN = {"session": {"mode": "plan"}}
OBSERVE = {"session": {"mode": "observe"}}

CASES = [
    # files
    Case("read inside the roots", path_call(), "allow", "paths.read_inside"),
    Case(
        "read with no roots",
        merged(path_call(inside=False), {"session": {"roots": []}}),
        "allow",
        "paths.read_inside",
    ),
    Case("read outside", path_call(inside=False, lexical="/srv/x"), "ask", "paths.read_outside"),
    Case(
        "read outside, strict",
        merged(path_call(inside=False), STRICT),
        "deny",
        "paths.read_outside",
    ),
    Case(
        "read /etc/shadow",
        path_call(inside=False, lexical="/etc/shadow", sensitive="credential"),
        "deny",
        "paths.sensitive",
    ),
    Case("read a key inside", path_call(sensitive="key"), "deny", "paths.sensitive"),
    Case("read .env", path_call(sensitive="credential"), "deny", "paths.sensitive"),
    Case("read a dotfile", path_call(sensitive="dotfile"), "allow", "paths.read_inside"),
    Case(
        "read through an escaping link",
        path_call(escapes=True, inside=False),
        "deny",
        "paths.escapes",
    ),
    Case("read what is not certain", path_call(certain=False), "ask", "paths.uncertain"),
    Case(
        "read a rejected path", path_call(rejected="nul", certain=False), "deny", "paths.rejected"
    ),
    Case("write inside", write_call(), "ask", "paths.write_inside"),
    Case(
        "write inside as writer",
        merged(write_call(), {"actor": {"roles": ["writer"]}}),
        "allow",
        "=",
    ),
    Case(
        "write a key as writer",
        merged(write_call(sensitive="key"), {"actor": {"roles": ["writer"]}}),
        "deny",
        "paths.sensitive",
    ),
    Case("write outside", write_call(inside=False), "deny", "paths.write_outside"),
    Case(
        "write outside as writer",
        merged(write_call(inside=False), {"actor": {"roles": ["writer"]}}),
        "deny",
        "paths.write_outside",
    ),
    Case("write inside, approved", merged(write_call(), APPROVED), "allow", "approval.approved"),
    Case(
        "write outside, approved",
        merged(write_call(inside=False), APPROVED),
        "deny",
        "paths.write_outside",
    ),
    Case("write inside, planning", merged(write_call(), PLAN), "deny", "paths.write_inside"),
    Case("write inside, observed", merged(write_call(), OBSERVE), "allow", "="),
    Case(
        "write inside by configuration",
        write_call(),
        "allow",
        "=",
        {"effects": {"agenttool.rules.paths.write_inside": "allow"}},
    ),
    # shell
    Case("a command that only reads", shell_call(), "allow", "shell.read_only"),
    Case(
        "a command that reads secrets",
        shell_call(sensitive_read=True),
        "ask",
        "shell.sensitive_read",
    ),
    Case(
        "a command that is not understood",
        shell_call(parsed=False, read_only=False),
        "ask",
        "declared.access_code_execution",
    ),
    Case("rm of a folder", shell_call(**_rm("build")), "ask", "declared.access_code_execution"),
    Case("rm of everything", shell_call(**_rm("/")), "deny", "shell.critical_target"),
    Case(
        "rm of everything, approved",
        merged(shell_call(**_rm("/")), APPROVED),
        "deny",
        "shell.critical_target",
    ),
    Case("rm of the root", shell_call(**_rm("/proj")), "deny", "shell.critical_target"),
    # network
    Case("a public page", url_call(), "allow", "network.reachable"),
    Case(
        "loopback",
        url_call(host="127.0.0.1", address="127.0.0.1", address_class="loopback"),
        "deny",
        "network.address",
    ),
    Case(
        "loopback on the list",
        url_call(host="127.0.0.1", address_class="loopback", port=8765),
        "allow",
        "network.reachable",
        {"network": {"allowed_hosts": ["127.0.0.1:8765"]}},
    ),
    Case(
        "loopback by the session's label",
        merged(
            url_call(host="127.0.0.1", address_class="loopback", port=8765),
            {"session": {"labels": {"allowed_hosts": "127.0.0.1:8765"}}},
        ),
        "allow",
        "network.reachable",
    ),
    Case(
        "a private address",
        url_call(host="10.0.0.1", address_class="private"),
        "deny",
        "network.address",
    ),
    Case(
        "the metadata service",
        url_call(host="169.254.169.254", address_class="metadata"),
        "deny",
        "network.address",
    ),
    Case("a file URL", url_call(scheme="file"), "deny", "network.scheme"),
    Case("an invalid URL", url_call(valid=False, rejected="control"), "deny", "network.invalid"),
    # sql
    Case("a select", sql_call(), "allow", "sql.read_only"),
    Case(
        "a delete of every row",
        sql_call(read_only=False, unbounded_write=True),
        "deny",
        "sql.unbounded_write",
    ),
    Case("an update", sql_call(read_only=False, tables_written=["t"]), "ask", "declared.writes"),
    # tools
    Case(
        "a read-only tool without facts", call(facts={"paths": []}), "allow", "declared.read_only"
    ),
    Case("a tool that states nothing", call(**UNSTATED), "ask", "declared.unstated"),
    Case(
        "a tool that states nothing, strict",
        merged(call(**UNSTATED), STRICT),
        "deny",
        "declared.unstated",
    ),
    Case(
        "a tool that states nothing, always allowed",
        call(**UNSTATED),
        "allow",
        "=",
        {"approval": {"always_allow": ["local.files.*"]}},
    ),
    Case("a disabled tool", call(tool={"lifecycle": "disabled"}), "deny", "declared.lifecycle"),
    Case("high risk", call(permission_profile={"risk_level": "high"}), "ask", "approval.risk"),
    Case(
        "approval required",
        call(permission_profile={"approval_required": True}),
        "ask",
        "approval.required",
    ),
    Case("asked before", call(invocation={"resumed": True}), "ask", "approval.sticky"),
    Case(
        "rejected",
        merged(write_call(), {"approval": {**fixture("approved"), "status": "rejected"}}),
        "deny",
        "approval.rejected",
    ),
    Case(
        "a payment",
        call(permission_profile={"access_kinds": ["payment"]}),
        "ask",
        "declared.access_payment",
    ),
    Case("a destructive tool", call(tool={"destructive": True}), "ask", "destructive.declared"),
    Case(
        "another tenant",
        call(permission_profile={"tenant_scope": "umbrella"}),
        "deny",
        "tenancy.scope",
    ),
    Case(
        "another tenant's argument",
        call(input={"tenant_id": "umbrella"}),
        "deny",
        "tenancy.argument",
    ),
    Case(
        "a used up budget",
        call(),
        "deny",
        "budgets.session",
        {"budgets": {"session": {"calls": 3}}},
    ),
    Case("a gated tool", call(), "deny", "evaluation.absent", {"evaluation": {"gates": ["*"]}}),
    Case(
        "a gated tool with a verdict",
        call(evaluation={"status": "pass", "trend": "improving", "next_step": None}),
        "allow",
        "paths.read_inside",
        {"evaluation": {"gates": ["*"]}},
    ),
    Case(
        "an untrusted recipient",
        call(
            tool={"id": "mail.send", "read_only": False},
            permission_profile={"access_kinds": [], "write_effects": []},
            facts={
                "paths": [],
                "provenance": {
                    "/to": {
                        "sources": ["tool:web"],
                        "untrusted": True,
                        "certain": True,
                        "sourced": "unstated",
                    }
                },
            },
        ),
        "ask",
        "dataflow.untrusted_target",
    ),
    Case(
        "nobody to ask",
        merged(write_call(), {"session": {"interactive": False}}),
        "deny",
        "agenttool.permission.nobody_to_ask",
        {"approval": {"non_interactive": "deny"}},
    ),
    Case(
        "nobody there, the question stays",
        merged(write_call(), {"session": {"interactive": False}}),
        "ask",
        "paths.write_inside",
    ),
    Case(
        "an unknown preset", call(), "deny", "agenttool.permission.configuration", {"preset": "lax"}
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_decision(case: Case, kind: type[Any]) -> None:
    engine = kind(case.settings) if case.settings else stock(kind)
    answer = engine.decide([case.document])[0]
    assert answer["behavior"] == case.behavior, answer
    if case.rule == "=":
        assert answer["reason"]["rule_ref"] == "agenttool.permission.answered"
    else:
        rule = case.rule if case.rule.startswith("agenttool.") else f"agenttool.rules.{case.rule}"
        assert rule in answer["rule_refs"]
        if case.behavior != "ask":
            assert answer["reason"]["rule_ref"] == rule
    # the pipeline believes nothing that is not exactly a decision document
    verdict = normalise(EngineAnswer(answer, "r"), engine="embedded")
    assert verdict.behavior == case.behavior
    assert not verdict.extra


@pytest.mark.slow
@pytest.mark.opa
def test_every_engine_gives_the_same_documents() -> None:
    groups: dict[str, list[Case]] = {}
    for case in CASES:
        groups.setdefault(repr(case.settings), []).append(case)
    for cases in groups.values():
        settings = cases[0].settings or None
        documents = [case.document for case in cases]
        # the other entry points read less, so the bundle as it ships is enough for them
        for entry_point in (DECISION,) if settings else (DECISION, VISIBLE, OBLIGATIONS):
            reference = Opa(settings).decide(documents, entry_point)
            for kind in EMBEDDED:
                answers = kind(settings).decide(documents, entry_point)
                for case, expected, answer in zip(cases, reference, answers, strict=True):
                    assert answer == expected, (case.name, kind.name, entry_point)


CUSTOM = {
    "agenttool/custom/acme/acme.rego": """package agenttool.custom.acme

deny contains {"rule": "acme.friday", "message": "not on a Friday"} if input.session.labels.day == "friday"

ask contains {"rule": "acme.big", "message": "a big one", "suggested_updates": [{"type": "acme"}]} if {
	input.session.labels.size == "big"
}

allow contains {
	"rule": "acme.drafts",
	"message": "drafts may be written",
	"waives": ["agenttool.rules.paths.write_inside"],
	"obligations": {"max_inline_chars": 100},
} if {
	some fact in input.facts.paths
	endswith(fact.lexical, ".draft")
}
""",
    "agenttool/custom/plain.rego": """package agenttool.custom

deny if input.session.labels.day == "sunday"
""",
}


def _labelled(document: dict[str, Any], **labels: str) -> dict[str, Any]:
    return merged(document, {"session": {"labels": labels}})


CUSTOM_CASES = [
    (call(), "allow", "agenttool.rules.paths.read_inside"),
    (_labelled(call(), day="friday"), "deny", "acme.friday"),
    (_labelled(call(), day="sunday"), "deny", "agenttool.custom.deny"),
    (_labelled(call(), size="big"), "ask", "acme.big"),
    (write_call(lexical="/proj/x.draft"), "allow", "agenttool.permission.answered"),
    (
        write_call(lexical="/proj/x.draft", sensitive="key"),
        "deny",
        "agenttool.rules.paths.sensitive",
    ),
    (write_call(lexical="/proj/x.txt"), "ask", "agenttool.rules.paths.write_inside"),
]


@pytest.mark.parametrize(
    "kind", [*EMBEDDED, pytest.param(Opa, marks=pytest.mark.opa)], ids=lambda kind: kind.name
)
def test_custom_rules_join_and_lift_no_denial(kind: type[Any]) -> None:
    answers = kind(custom=CUSTOM).decide([document for document, _, _ in CUSTOM_CASES])
    for (_, behavior, rule), answer in zip(CUSTOM_CASES, answers, strict=True):
        assert (answer["behavior"], answer["reason"]["rule_ref"]) == (behavior, rule)
    assert answers[4]["obligations"]["max_inline_chars"] == 100


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_an_answer_has_no_argument_but_the_blocked_path(kind: type[Any]) -> None:
    marker = "zq7-marker"
    documents = [
        path_call(inside=False, lexical=f"/srv/{marker}", raw=marker),
        url_call(
            host=f"{marker}.example",
            host_unicode=marker,
            path=f"/{marker}",
            address_class="private",
        ),
        shell_call(**_rm(marker)),
        sql_call(read_only=False, tables_written=[marker], statements=[marker]),
        call(input={"tenant": marker}),
        call(hooks=[{"hook_id": "h", "behavior": "deny", "message": marker}]),
        call(
            permission_profile={
                "risk_level": marker,
                "access_kinds": [marker],
                "approval_reason": marker,
            }
        ),
    ]
    for document, answer in zip(documents, stock(kind).decide(documents), strict=True):
        assert answer["behavior"] != "allow", document
        assert marker not in repr({**answer, "blocked_path": None}), answer
