"""A policy that loops, in a process that is killed for it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from policy_inputs import make_document

from agenttool_otel.errors import PolicyEvaluationError, PolicyLoadError, PolicyUnavailable
from agenttool_otel.names import Behavior, DecisionSource, FailClosedCause
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.isolated import IsolatedEngine
from agenttool_otel.policy.types import PolicyEngine

DECISION = "data.agenttool.permission.decision"
LOOPS = """
decision := {"behavior": "allow"} if not input.tool.destructive

decision := {"behavior": "deny", "n": n} if {
	input.tool.destructive
	r := [a | some a in numbers.range(1, 3000)]
	n := count([1 | some x in r; some y in r; some z in r])
}
"""


def bundle(rules: str) -> Bundle:
    return bundle_from_files(
        {"p.rego": f"package agenttool.permission\n\n{rules}\n".encode()}, origin="t"
    )


async def test_a_looping_rule_is_a_deny_in_bounded_time() -> None:
    engine = IsolatedEngine(bundle(LOOPS))
    assert isinstance(engine, PolicyEngine)
    decider = Decider([engine], timeout=10)
    assert decider.decide(make_document()).behavior is Behavior.ALLOW
    short = Decider([engine], timeout=0.3)
    for mode in ("sync", "async"):
        document: Any = make_document({"tool.destructive": True})
        started = time.monotonic()
        verdict = short.decide(document) if mode == "sync" else await short.adecide(document)
        assert time.monotonic() - started < 30
        assert (verdict.behavior, verdict.source) == (Behavior.DENY, DecisionSource.TIMEOUT)
        assert decider.decide(make_document()).behavior is Behavior.ALLOW
    engine.close()
    with pytest.raises(PolicyUnavailable):
        engine.evaluate(DECISION, make_document(), timeout=1)


def test_a_child_that_dies_is_a_deny_and_is_replaced() -> None:
    engine = IsolatedEngine(bundle('decision := {"behavior": "allow"}'))
    os.kill(engine._children._idle[0]._process.pid, signal.SIGKILL)
    verdict = Decider([engine], timeout=10).decide(make_document())
    assert (verdict.behavior, verdict.fail_closed) == (Behavior.DENY, FailClosedCause.ENGINE_PANIC)
    assert Decider([engine], timeout=10).decide(make_document()).behavior is Behavior.ALLOW
    engine.close()


def test_errors_and_swaps_are_those_of_the_embedded_engine() -> None:
    engine = IsolatedEngine(bundle("decision := to_number(input.tool.name)"))
    with pytest.raises(PolicyEvaluationError) as caught:
        engine.evaluate(DECISION, make_document(), timeout=10)
    assert caught.value.cause is FailClosedCause.ENGINE_ERROR
    with pytest.raises(PolicyLoadError):
        engine.swap(bundle("decision := x"))
    engine.swap(bundle("decision := input.input.text"))
    big = "é" * 500_000
    with pytest.raises(PolicyEvaluationError, match="larger than"):
        engine.evaluate(DECISION, make_document({"input": {"text": big}}), timeout=20)
    assert (
        engine.evaluate(DECISION, make_document({"input": {"text": big[:1000]}}), timeout=20).value
        == big[:1000]
    )
    engine.close()


def test_it_works_in_a_process_with_very_many_open_files() -> None:
    resource = pytest.importorskip("resource", reason="limits of descriptors are a matter of POSIX")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this system allows {hard} descriptors only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    opened: list[int] = []
    try:
        while not opened or opened[-1] < 1100:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        engine = IsolatedEngine(bundle('decision := {"behavior": "allow"}'))
        try:
            assert Decider([engine], timeout=10).decide(make_document()).behavior is Behavior.ALLOW
        finally:
            engine.close()
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
