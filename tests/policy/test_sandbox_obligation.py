"""What a policy obliges of the place where a body runs: read strictly, and the strictest of several
holds, whoever wants it and in whatever order.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opa_program import opa_server
from policy_inputs import make_document

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import Behavior, FailClosedCause, PolicyMode
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.bundle_files import bundle_files, write_archive
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.engines.opa_server import OpaServerEngine
from agenttool_otel.policy.engines.static import StaticEngine
from agenttool_otel.policy.normalise import normalise
from agenttool_otel.policy.types import EngineAnswer, SandboxDuty

STRICTNESS = ["write", "rehearse", "read"]
SANDBOXES = st.fixed_dictionaries(
    {"profile": st.sampled_from(STRICTNESS)}, optional={"network": st.just("none")}
)
RULES = b"""package agenttool.custom

ask contains {"rule": sprintf("own.ask_%d", [n]), "message": "ask", "obligations": {"sandbox": sandbox}} if {
	some n, sandbox in input.input.asking
}

allow contains {
	"rule": sprintf("own.allow_%d", [n]),
	"message": "allow",
	"waives": ["agenttool.rules.shell.not_read_only"],
	"obligations": object.union({"sandbox": sandbox}, object.get(input.input, "others", {})),
} if {
	some n, sandbox in input.input.allowing
}

deny contains {"rule": "own.unheld", "message": "it can't be held"} if {
	input.input.needs == true
	not "read" in input.execution.sandboxes
}
"""


def answer(sandbox: Any) -> EngineAnswer:
    return EngineAnswer({"behavior": "allow", "obligations": {"sandbox": sandbox}}, "r", None)


def strictest(wanted: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What has to come of it, by the plainest rule."""
    if not wanted:
        return None
    found: dict[str, Any] = {
        "profile": max((each["profile"] for each in wanted), key=STRICTNESS.index)
    }
    if any("network" in each for each in wanted):
        found["network"] = "none"
    return found


def shown(duty: SandboxDuty | None) -> dict[str, Any] | None:
    if duty is None:
        return None
    network = {} if duty.network is None else {"network": str(duty.network)}
    return {"profile": str(duty.profile), **network}


@cache
def bundle() -> Bundle:
    own = bundle_from_files(
        {"own.rego": RULES, ".manifest": b'{"roots": ["agenttool/custom"]}'}, origin="own"
    )
    return overlay(load_bundle(default_bundle_path()), extension=own)


@cache
def engine() -> EmbeddedEngine:
    return EmbeddedEngine(bundle())


def document(**arguments: Any) -> Any:
    return make_document({"tool.ownership": "managed"}, input=arguments)


@given(SANDBOXES)
def test_what_is_obliged_is_read(sandbox: dict[str, Any]) -> None:
    assert shown(normalise(answer(sandbox), engine="e").sandbox) == sandbox


@pytest.mark.parametrize(
    "sandbox",
    [
        "read",
        ["read"],
        True,
        {},
        {"network": "none"},
        {"profile": None},
        {"profile": "reed"},
        {"profile": "READ"},
        {"profile": ["read"]},
        {"profile": "read", "network": "all"},
        {"profile": "read", "network": False},
        {"profile": "read", "networks": "none"},
    ],
    ids=json.dumps,
)
def test_what_is_not_understood_is_no_decision(sandbox: Any) -> None:
    with pytest.raises(PolicyEvaluationError) as caught:
        normalise(answer(sandbox), engine="e")
    assert caught.value.cause is FailClosedCause.MALFORMED


@given(st.lists(SANDBOXES, min_size=1, max_size=4))
def test_the_strictest_of_a_chain_holds(wanted: list[dict[str, Any]]) -> None:
    *first, last = [
        StaticEngine({"behavior": behavior, "obligations": {"sandbox": sandbox}})
        for behavior, sandbox in zip(
            ["passthrough"] * (len(wanted) - 1) + ["allow"], wanted, strict=True
        )
    ]
    verdict = Decider([*first, last]).decide(document())
    assert verdict.behavior is Behavior.ALLOW
    assert shown(verdict.sandbox) == strictest(wanted)


@given(st.lists(SANDBOXES, max_size=3), st.lists(SANDBOXES, max_size=3))
def test_the_strictest_finding_holds(
    asking: list[dict[str, Any]], allowing: list[dict[str, Any]]
) -> None:
    verdict = Decider([engine()]).decide(document(asking=asking, allowing=allowing))
    assert verdict.behavior is (Behavior.ASK if asking else Behavior.ALLOW)
    assert shown(verdict.sandbox) == strictest(asking + allowing)


@pytest.mark.parametrize(
    "broken", ["read", {"profile": "reed"}, {"profile": "read", "net": "none"}]
)
def test_a_finding_that_is_not_understood_denies(broken: Any) -> None:
    verdict = Decider([engine()]).decide(document(allowing=[{"profile": "read"}, broken]))
    assert (verdict.behavior, verdict.fail_closed) == (Behavior.DENY, FailClosedCause.MALFORMED)


def test_a_misspelt_obligation_of_a_finding_denies() -> None:
    others = {"sandbx": {"profile": "read"}}
    verdict = Decider([engine()]).decide(document(allowing=[{"profile": "write"}], others=others))
    assert (verdict.behavior, verdict.fail_closed) == (Behavior.DENY, FailClosedCause.MALFORMED)


def test_a_cached_decision_obliges_the_same() -> None:
    decider = Decider([engine()], cache=DecisionCache())
    asked = document(allowing=[{"profile": "read", "network": "none"}])
    first, second = decider.decide(asked), decider.decide(asked)
    assert (first.cached, second.cached) == (False, True)
    assert first.sandbox == second.sandbox is not None


def test_what_can_be_had_is_in_the_cache_key() -> None:
    decider = Decider([engine()], cache=DecisionCache())
    needs = document(needs=True)
    needs["execution"] = {"sandboxes": ["read"], "scope": "thread"}
    assert decider.decide(needs).behavior is Behavior.ALLOW
    needs["execution"] = {"sandboxes": [], "scope": "thread"}
    assert decider.decide(needs).behavior is Behavior.DENY


def test_only_a_rule_that_reads_it_wants_it_proven() -> None:
    stock = EmbeddedEngine(load_bundle(default_bundle_path()))
    for kind in ("function", "file_operation", "code_execution"):
        assert not Decider([stock]).wants(("execution",), "default", kind)
        assert Decider([engine()]).wants(("execution",), "default", kind)
    assert Decider([stock]).wants(("execution",), "default", "shell_command")


def test_shadow_mode_obliges_nothing_and_keeps_it() -> None:
    verdict = Decider([engine()], mode=PolicyMode.SHADOW).decide(
        document(allowing=[{"profile": "read"}])
    )
    assert verdict.sandbox is None
    assert verdict.shadow is not None
    assert shown(verdict.shadow.sandbox) == {"profile": "read"}


@pytest.mark.opa
def test_opa_obliges_the_same(tmp_path: Path) -> None:
    archive = tmp_path / "bundle.tar.gz"
    # the stock roots do not permit the package of the rules of one's own
    files = {**bundle_files(bundle()), ".manifest": b"{}"}
    archive.write_bytes(write_archive(files))
    wanted = [
        ([], []),
        ([{"profile": "write"}], [{"profile": "read", "network": "none"}]),
        ([], [{"profile": "rehearse"}, {"profile": "write", "network": "none"}]),
        ([], [{"profile": "read"}, {"profile": "reed"}]),
    ]
    with opa_server("--bundle", str(archive)) as server:
        remote = OpaServerEngine(server.url)
        for asking, allowing in wanted:
            asked = document(asking=asking, allowing=allowing)
            ours, theirs = Decider([engine()]).decide(asked), Decider([remote]).decide(asked)
            assert (ours.behavior, ours.sandbox) == (theirs.behavior, theirs.sandbox)
        remote.close()
