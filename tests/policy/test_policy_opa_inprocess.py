"""A real OPA in this process: interrupted at its deadline, refused when too much is still running."""

from __future__ import annotations

import time
from typing import Any

import pytest
from policy_inputs import make_document

from agenttool_otel.errors import PolicyEvaluationError, PolicyLoadError, PolicyTimeout, PolicyUnavailable
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.opa_inprocess import OpaInProcessEngine
from agenttool_otel.policy.types import PolicyEngine

pytest.importorskip("opa_bindings", reason="opa-golib-python-bindings is not installed")

DECISION = "data.agenttool.permission.decision"
SLOW = "count([1 | some x in r; some y in r; some z in r])\n\nr := numbers.range(1, 150)"


def bundle(rules: str) -> Bundle:
    return bundle_from_files({"p.rego": f"package agenttool.permission\n\n{rules}\n".encode()}, origin="t")


def test_it_is_an_engine() -> None:
    engine = OpaInProcessEngine(bundle('decision := {"behavior": "allow", "hash": crypto.sha256("a")}'))
    assert isinstance(engine, PolicyEngine)
    answer = engine.evaluate(DECISION, make_document(), timeout=10)
    assert answer.value["hash"].startswith("ca978112")
    assert answer.revision == engine.revision
    engine.close()
    with pytest.raises(PolicyUnavailable):
        engine.evaluate(DECISION, make_document(), timeout=10)


@pytest.mark.parametrize(
    "rules", ["decision := {", "other := 1", "decision := x", "decision := no.such(1)", "decision := decision"]
)
def test_a_broken_bundle_is_refused(rules: str) -> None:
    with pytest.raises(PolicyLoadError):
        OpaInProcessEngine(bundle(rules))


@pytest.mark.parametrize(
    ("rules", "cause"),
    [
        ("decision := 1 if input.tool.destructive", FailClosedCause.UNDEFINED),
        ("decision := to_number(input.tool.name)", FailClosedCause.ENGINE_ERROR),
        ("decision := 1 if input.tool.name\n\ndecision := 2 if input.tool.id", FailClosedCause.ENGINE_ERROR),
    ],
)
async def test_no_decision(rules: str, cause: FailClosedCause) -> None:
    engine = OpaInProcessEngine(bundle(rules))
    with pytest.raises(PolicyEvaluationError) as caught:
        await engine.aevaluate(DECISION, make_document(), timeout=10)
    assert caught.value.cause is cause
    engine.close()


def test_a_rule_that_loops_is_given_up_at_the_deadline_and_the_engine_goes_on() -> None:
    fast = 'decision := {"behavior": "allow"} if not input.tool.destructive'
    engine = OpaInProcessEngine(bundle(f"{fast}\n\ndecision := loop if input.tool.destructive\n\nloop := {SLOW}"))
    slow: Any = make_document({"tool.destructive": True})
    for _ in range(4):
        started = time.monotonic()
        with pytest.raises(PolicyTimeout):
            engine.evaluate(DECISION, slow, timeout=0.05)
        assert time.monotonic() - started < 2
    with pytest.raises(PolicyUnavailable, match="given up"):
        engine.evaluate(DECISION, make_document(), timeout=1)
    engine.close()


def test_swap() -> None:
    engine = OpaInProcessEngine(bundle("decision := 1"))
    with pytest.raises(PolicyLoadError):
        engine.swap(bundle("decision := x"))
    assert engine.evaluate(DECISION, make_document(), timeout=10).value == 1
    engine.swap(bundle("decision := 2"))
    assert engine.evaluate(DECISION, make_document(), timeout=10).value == 2
    engine.close()
