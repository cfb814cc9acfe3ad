"""The decider: chains, modes, and a verdict whatever happens."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from policy_inputs import make_document

from agenttool_otel.errors import (
    ConfigurationError,
    PolicyEvaluationError,
    PolicyLoadError,
    PolicyTimeout,
)
from agenttool_otel.names import Behavior, DecisionSource, FailClosedCause, PolicyMode
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities


class Scripted:
    """An engine that says or does what the test wants: the misbehaving engines can't be had
    otherwise.
    """

    revision = "scripted-1"
    capabilities = EngineCapabilities()

    def __init__(
        self, value: Any, *, name: str = "scripted", wait: float = 0.0, remote: bool = False
    ) -> None:
        self.name = name
        self.value = value
        self.wait = wait
        self.capabilities = EngineCapabilities(remote=remote)
        self.asked = 0
        self.closed = False

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        self.asked += 1
        time.sleep(self.wait)
        return self._answer()

    async def aevaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        self.asked += 1
        await asyncio.sleep(self.wait)
        return self._answer()

    def _answer(self) -> EngineAnswer:
        if isinstance(self.value, BaseException):
            raise self.value
        return EngineAnswer(self.value, self.revision)

    def close(self) -> None:
        self.closed = True


def said(behavior: str) -> dict[str, Any]:
    return {"behavior": behavior, "reason": {"rule_ref": f"rule.{behavior}"}}


@pytest.mark.parametrize(
    ("chain", "expected", "asked"),
    [
        (["allow"], Behavior.ALLOW, [1]),
        (["passthrough", "ask", "allow"], Behavior.ASK, [1, 1, 0]),
        (["deny", "allow"], Behavior.DENY, [1, 0]),
        (["passthrough", "passthrough"], Behavior.DENY, [1, 1]),
        ([], Behavior.DENY, []),
    ],
)
async def test_chains(chain: list[str], expected: Behavior, asked: list[int]) -> None:
    engines = [Scripted(said(item)) for item in chain]
    for verdict in (
        Decider(engines).decide(make_document()),
        await Decider(engines).adecide(make_document()),
    ):
        assert verdict.behavior is expected
        if not chain or set(chain) == {"passthrough"}:
            assert verdict.fail_closed is FailClosedCause.NO_DECISION
    assert [engine.asked for engine in engines] == [2 * times for times in asked]


@pytest.mark.parametrize(
    ("failure", "source", "cause"),
    [
        (PolicyEvaluationError("x"), DecisionSource.ERROR, FailClosedCause.ENGINE_ERROR),
        (PolicyTimeout("x"), DecisionSource.TIMEOUT, FailClosedCause.TIMEOUT),
        (ZeroDivisionError("hunter2"), DecisionSource.ERROR, FailClosedCause.INTERNAL),
        (RecursionError(), DecisionSource.ERROR, FailClosedCause.INTERNAL),
        (MemoryError(), DecisionSource.ERROR, FailClosedCause.INTERNAL),
        (None, DecisionSource.ERROR, FailClosedCause.UNDEFINED),
        ({"behavior": "yes"}, DecisionSource.ERROR, FailClosedCause.UNKNOWN_BEHAVIOR),
        ("allow", DecisionSource.ERROR, FailClosedCause.MALFORMED),
    ],
)
async def test_every_failure_is_a_deny_and_ends_the_chain(
    failure: Any, source: Any, cause: Any
) -> None:
    after = Scripted(said("allow"))
    decider = Decider([Scripted(failure), after])
    for verdict in (decider.decide(make_document()), await decider.adecide(make_document())):
        assert (verdict.behavior, verdict.source, verdict.fail_closed) == (
            Behavior.DENY,
            source,
            cause,
        )
        assert verdict.engine == "scripted"
        assert "hunter2" not in verdict.message
    assert after.asked == 0


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(), GeneratorExit()])
async def test_what_means_stop_passes_through(stop: BaseException) -> None:
    with pytest.raises(type(stop)):
        Decider([Scripted(stop)]).decide(make_document())


async def test_cancellation_passes_through() -> None:
    task = asyncio.create_task(Decider([Scripted(said("allow"), wait=30)]).adecide(make_document()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class TestInput:
    """What the engine would misread is not asked at all."""

    @pytest.mark.parametrize(
        "change",
        [
            {"actor.roles": "reader"},
            {"tool.read_only": "yes"},
            {"invocation.attempt": "1"},
            {"session.labels": {"k": 1}},
            {"facts.paths": [{}]},
            {"input": []},
            {"input": {"x": float("nan")}},
        ],
    )
    def test_a_document_that_does_not_fit_is_denied(self, change: dict[str, Any]) -> None:
        files = {"p.rego": b'package agenttool.permission\n\ndecision := {"behavior": "allow"}\n'}
        verdict = Decider([EmbeddedEngine(bundle_from_files(files, origin="t"))]).decide(
            make_document(change)
        )
        assert (verdict.behavior, verdict.fail_closed) == (
            Behavior.DENY,
            FailClosedCause.INPUT_INVALID,
        )

    def test_missing_and_unknown_members(self) -> None:
        less = make_document()
        del less["actor"]
        for document in (less, {**make_document(), "extra": 1}, None, [], "x"):
            verdict = Decider([Scripted(said("allow"))]).decide(document)
            assert verdict.fail_closed is FailClosedCause.INPUT_INVALID


class TestDeadline:
    """An answer that comes too late is none, whatever it says."""

    def test_sync(self) -> None:
        verdict = Decider([Scripted(said("allow"), wait=0.05)], timeout=0.01).decide(
            make_document()
        )
        assert (verdict.behavior, verdict.source) == (Behavior.DENY, DecisionSource.TIMEOUT)
        assert verdict.fail_closed is FailClosedCause.TIMEOUT

    async def test_a_remote_engine_that_never_answers(self) -> None:
        started = time.monotonic()
        verdict = await Decider(
            [Scripted(said("allow"), wait=60, remote=True)], timeout=0.05
        ).adecide(make_document())
        assert verdict.fail_closed is FailClosedCause.TIMEOUT
        assert time.monotonic() - started < 30

    def test_the_whole_chain_shares_it(self) -> None:
        chain = [Scripted(said("passthrough"), wait=0.03), Scripted(said("allow"), wait=0.03)]
        assert (
            Decider(chain, timeout=0.04).decide(make_document()).fail_closed
            is FailClosedCause.TIMEOUT
        )


def test_a_decision_that_has_expired_is_none() -> None:
    old = {**said("allow"), "expires_at": "2026-11-21T09:59:59Z"}
    new = {**said("allow"), "expires_at": "2026-11-21T10:00:01Z"}
    document = make_document(time="2026-11-21T10:00:00Z")
    assert Decider([Scripted(old)]).decide(document).behavior is Behavior.DENY
    assert Decider([Scripted(new)]).decide(document).behavior is Behavior.ALLOW


class TestShadow:
    """Shadow: decided and recorded, not done."""

    def test_a_governor_in_shadow_mode_never_blocks(self) -> None:
        for value in (said("deny"), said("ask"), None, PolicyTimeout("x")):
            verdict = Decider([Scripted(value)], mode="shadow").decide(make_document())
            assert (verdict.behavior, verdict.mode) == (Behavior.ALLOW, PolicyMode.SHADOW)
            assert verdict.shadow is not None
            assert verdict.shadow.behavior is (
                Behavior.ASK if value == said("ask") else Behavior.DENY
            )

    def test_redaction_is_kept_in_shadow_mode(self) -> None:
        value = {**said("deny"), "obligations": {"redact_result": "*", "redact_input": ["/a"]}}
        verdict = Decider([Scripted(value)], mode="shadow").decide(make_document())
        assert (verdict.redact_result, verdict.redact_input) == (("*",), ("/a",))

    async def test_a_shadow_engine_is_recorded_and_changes_nothing(self) -> None:
        for value, expected in ((said("deny"), Behavior.DENY), (RuntimeError(), Behavior.DENY)):
            decider = Decider([Scripted(said("allow"))], shadow_engines=[Scripted(value)])
            for verdict in (
                decider.decide(make_document()),
                await decider.adecide(make_document()),
            ):
                assert verdict.behavior is Behavior.ALLOW
                assert verdict.shadow is not None
                assert (verdict.shadow.behavior, verdict.shadow.mode) == (
                    expected,
                    PolicyMode.SHADOW,
                )

    PACKAGES: ClassVar = {
        "p.rego": b"""package agenttool.permission

decision := {"behavior": "deny", "reason": {"rule_ref": min(denials)}} if {
	count(denials) > 0
} else := {"behavior": "allow"}

denials contains rule if some rule in data.agenttool.rules.network.deny

denials contains rule if some rule in data.agenttool.rules.paths.deny
""",
        "n.rego": b'package agenttool.rules.network\n\ndeny contains "network" if input.tool.open_world\n',
        "f.rego": b'package agenttool.rules.paths\n\ndeny contains "paths" if input.tool.destructive\n',
    }

    def test_a_shadow_rule_package_does_not_block_others_do(self) -> None:
        engine = EmbeddedEngine(bundle_from_files(self.PACKAGES, origin="t"))
        decider = Decider([engine], shadow_packages=["agenttool.rules.network"])
        verdict = decider.decide(make_document({"tool.open_world": True}))
        assert verdict.behavior is Behavior.ALLOW
        assert verdict.shadow is not None
        assert (verdict.shadow.behavior, verdict.shadow.rule_ref) == (Behavior.DENY, "network")
        blocked = decider.decide(make_document({"tool.destructive": True}))
        assert (blocked.behavior, blocked.rule_ref) == (Behavior.DENY, "paths")

    def test_a_second_opinion_that_nobody_would_record_is_refused(self) -> None:
        engine = EmbeddedEngine(bundle_from_files(self.PACKAGES, origin="t"))
        for packages, shadows in (((), 2), (["agenttool.rules.network"], 1)):
            others = [Scripted(said("deny")) for _ in range(shadows)]
            with pytest.raises(ConfigurationError, match="one shadow decision"):
                Decider([engine], shadow_packages=packages, shadow_engines=others)

    async def test_shadowed_packages_of_a_chain_are_asked_as_a_chain(self) -> None:
        class Passing(Scripted):
            def shadowing(self, packages: Any) -> Passing:
                return self

        engine = EmbeddedEngine(bundle_from_files(self.PACKAGES, origin="t"))
        decider = Decider(
            [Passing(said("passthrough")), engine], shadow_packages=["agenttool.rules.network"]
        )
        document = make_document({"tool.open_world": True})
        for verdict in (decider.decide(document), await decider.adecide(document)):
            assert verdict.behavior is Behavior.ALLOW
            assert verdict.shadow is not None
            assert (verdict.shadow.behavior, verdict.shadow.rule_ref) == (Behavior.DENY, "network")

    async def test_a_shadow_engine_gets_the_time_that_is_left(self) -> None:
        given: list[float] = []

        class Watched(Scripted):
            def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
                given.append(timeout)
                return super().evaluate(entry_point, document, timeout=timeout)

            async def aevaluate(
                self, entry_point: str, document: Any, *, timeout: float
            ) -> EngineAnswer:
                return self.evaluate(entry_point, document, timeout=timeout)

        class Slow(Scripted):
            def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
                time.sleep(0.2)
                return super().evaluate(entry_point, document, timeout=timeout)

            async def aevaluate(
                self, entry_point: str, document: Any, *, timeout: float
            ) -> EngineAnswer:
                return self.evaluate(entry_point, document, timeout=timeout)

        decider = Decider([Slow(said("allow"))], shadow_engines=[Watched(said("deny"))], timeout=30)
        decider.decide(make_document())
        await decider.adecide(make_document())
        assert len(given) == 2
        assert max(given) <= 29.8

    def test_it_follows_a_reload(self) -> None:
        engine = EmbeddedEngine(bundle_from_files(self.PACKAGES, origin="t"))
        decider = Decider([engine], shadow_packages=["agenttool.rules.network"])
        changed = {
            **self.PACKAGES,
            "f.rego": b'package agenttool.rules.paths\n\ndeny contains "new"\n',
        }
        engine.swap(bundle_from_files(changed, origin="t"))
        assert decider.decide(make_document()).rule_ref == "new"

    def test_unknown_packages_and_engines_that_can_not(self) -> None:
        engine = EmbeddedEngine(bundle_from_files(self.PACKAGES, origin="t"))
        with pytest.raises(PolicyLoadError, match="no package"):
            Decider([engine], shadow_packages=["agenttool.rules.netwrok"])
        with pytest.raises(ConfigurationError, match="can't leave rule packages out"):
            Decider([Scripted(said("allow"))], shadow_packages=["x"])


class TestOtherEntryPoints:
    """Visibility fails hidden."""

    def test_visible(self) -> None:
        assert Decider([Scripted(True)]).visible(make_document()) is True
        for value in (False, None, "true", 1, RuntimeError()):
            assert Decider([Scripted(value)]).visible(make_document()) is False
        assert Decider([]).visible(make_document()) is False


def test_it_describes_and_closes_what_it_was_given(tmp_path: Path) -> None:
    engine, shadow = Scripted(said("allow")), Scripted(said("deny"))
    decider = Decider([engine], shadow_engines=[shadow], cache=DecisionCache(10))
    described = decider.describe()
    assert described["engines"] == [{"name": "scripted", "revision": "scripted-1", "remote": False}]
    assert described["cache"]["max_entries"] == 10
    assert decider.revision == "scripted-1"
    decider.close()
    assert engine.closed
    assert shadow.closed
