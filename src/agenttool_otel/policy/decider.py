"""Decider: a document in, a believed verdict out, whatever happens in between.

It never raises a failure: everything that stands between a call and a proper decision becomes a
deny with the reason. Only what means "stop this program or task" passes through.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar, cast

from agenttool_otel.errors import (
    ConfigurationError,
    PolicyError,
    PolicyEvaluationError,
    PolicyTimeout,
)
from agenttool_otel.names import (
    SURFACE_REASON,
    Behavior,
    EntryPoint,
    FailClosedCause,
    PolicyMode,
)
from agenttool_otel.policy.bundles.input_schema import validate_input
from agenttool_otel.policy.cache import DecisionCache, Lookup
from agenttool_otel.policy.normalise import deny_for, no_decision, normalise, normalise_visible
from agenttool_otel.policy.rego.native import is_panic
from agenttool_otel.policy.rego.syntax import Path
from agenttool_otel.policy.types import (
    EngineAnswer,
    PolicyEngine,
    PolicyInput,
    SandboxDuty,
    Verdict,
)
from agenttool_otel.values.snapshot import snapshot

_Answer = TypeVar("_Answer")

DEFAULT_TIMEOUT: Final = 2.0
"""Seconds that a whole decision may take."""


_OWN: Final = "agenttool_otel.policy."
"""Where the engines are that only read their input."""


def _failure(error: BaseException, engine: PolicyEngine | None) -> Verdict:
    """Turn a failure into a deny, or raise it again when it is none."""
    if is_panic(error):
        error = PolicyEvaluationError(
            "the policy engine panicked", cause=FailClosedCause.ENGINE_PANIC
        )
    if not isinstance(error, Exception):
        raise error
    if engine is None:
        return deny_for(error)
    bundle = getattr(engine, "bundle", None)
    digest = "" if bundle is None else bundle.digest
    return deny_for(error, engine=engine.name, revision=engine.revision, bundle_digest=digest)


class Decider:
    """Runs a chain of engines and makes one verdict of their answers."""

    def __init__(
        self,
        engines: Sequence[PolicyEngine],
        *,
        mode: PolicyMode | str = PolicyMode.ENFORCE,
        timeout: float = DEFAULT_TIMEOUT,
        cache: DecisionCache | None = None,
        shadow_engines: Sequence[PolicyEngine] = (),
        shadow_packages: Sequence[str] = (),
        shadow_tools: Sequence[str] = (),
    ) -> None:
        if len(shadow_engines) + bool(shadow_packages) > 1:
            # a verdict, a span and the metrics have room for one other opinion; a second would be
            # asked for nothing
            raise ConfigurationError(
                "one shadow decision is recorded for each call: give one shadow engine, or shadow packages"
            )
        whole: tuple[PolicyEngine, ...] = ()
        if shadow_packages:
            # the whole policy is asked for the record, the reduced one for the decision
            whole = tuple(engines)
            engines = [_reduced(engine, shadow_packages) for engine in engines]
        self.engines = tuple(engines)
        try:
            self.mode = PolicyMode(mode)
        except ValueError:
            raise ConfigurationError("policy_mode has to be enforce or shadow") from None
        self._wanted: dict[tuple[int, str, str, Path], bool] = {}
        self._timeout = float(timeout)
        if math.isnan(self._timeout):
            # every comparison with it would be false
            raise ConfigurationError("policy_timeout is not a number")
        self._cache = cache
        self._shadow_engines = whole or tuple(shadow_engines)
        self._shadow_packages = tuple(shadow_packages)
        self._shadow_tools = tuple(shadow_tools)

    @property
    def revision(self) -> str:
        """Revision of the first engine's bundle."""
        return self.engines[0].revision if self.engines else ""

    def describe(self) -> dict[str, Any]:
        """Return the configuration as plain data, for people and the evidence log."""
        return {
            "mode": str(self.mode),
            "timeout_s": self._timeout,
            "engines": [_describe(engine) for engine in self.engines],
            "shadow_engines": [_describe(engine) for engine in self._shadow_engines],
            "shadow_packages": list(self._shadow_packages),
            "shadow_tools": list(self._shadow_tools),
            "cache": None if self._cache is None else self._cache.describe(),
        }

    def wants(self, path: Path, mode: str, kind: str) -> bool:
        """Return whether some engine may read a part of the input, which need not be made where none
        does.

        Args:
            path: the part.
            mode: the session's mode.
            kind: kind of the tool.
        """
        for engine in (*self.engines, *self._shadow_engines):
            generation = getattr(engine, "generation", None)
            if generation is None:
                if path not in getattr(engine, "unread", ()):
                    return True  # an engine that proves nothing about what it reads
                continue
            key = (generation, mode, kind, path)
            wanted = self._wanted.get(key)
            if wanted is None:
                wanted = self._wanted[key] = _may_read(engine, path, mode, kind)
            if wanted:
                return True
        return False

    @property
    def caching_engine(self) -> tuple[PolicyEngine, DecisionCache] | None:
        """The engine whose cached answers are this chain's decisions, whole and in force, and the
        cache; ``None`` where more than one answer makes a decision.
        """
        observes = self.mode is PolicyMode.SHADOW or self._shadow_tools
        if self._cache is None or len(self.engines) != 1 or self._shadow_engines or observes:
            return None
        return self.engines[0], self._cache

    def close(self) -> None:
        """Close every engine."""
        for engine in (*self.engines, *self._shadow_engines):
            engine.close()

    # --- decisions --------------------------------------------------------------------------------

    def decide(self, document: PolicyInput) -> Verdict:
        """Decide one call."""
        try:
            self._decide(document, waits=False).send(None)
        except StopIteration as done:
            return cast(Verdict, done.value)
        raise AssertionError("it awaits nothing, so it never waits")

    async def adecide(self, document: PolicyInput) -> Verdict:
        """Decide one call without blocking the event loop; as ``decide``."""
        return await self._decide(document, waits=True)

    async def _decide(self, document: PolicyInput, *, waits: bool) -> Verdict:
        started = time.perf_counter()
        verdict = await self._chain(self.engines, document, started, waits)
        shadow: Verdict | None = None
        if self._shadow_packages:
            shadow = await self._chain(self._shadow_engines, document, started, waits)
        elif self._shadow_engines:
            shadow = await self._ask(self._shadow_engines[0], document, started, waits)
        if shadow is not None:
            shadow.mode = PolicyMode.SHADOW
            verdict.shadow = shadow
        if self._only_observes(document):
            verdict = _observed(verdict)
        verdict.duration = time.perf_counter() - started
        return verdict

    async def _chain(
        self, engines: Sequence[PolicyEngine], document: PolicyInput, started: float, waits: bool
    ) -> Verdict:
        engine: PolicyEngine | None = None
        verdict: Verdict | None = None
        duty: SandboxDuty | None = None
        try:
            for engine in engines:
                verdict = await self._ask(engine, document, started, waits)
                if verdict.sandbox is not None or duty is not None:
                    # what an engine that passes the question on obliges, the next one can't lift
                    duty = verdict.sandbox = _joined(verdict.sandbox, duty)
                if verdict.behavior is not Behavior.PASSTHROUGH:
                    return verdict
            return _nobody_decided(engine, verdict)
        except BaseException as error:
            return _failure(error, engine)

    async def _ask(
        self, engine: PolicyEngine, document: PolicyInput, began: float, waits: bool
    ) -> Verdict:
        timeout = self._timeout
        cache = self._cache
        found = Lookup(None)
        try:
            if not engine.capabilities.counts_cpu_time:
                timeout -= time.perf_counter() - began
            if cache is not None:
                found = cache.lookup(engine, document)
                if found.verdict is not None:
                    return found.verdict
            validate_input(document)
            started = time.perf_counter()
            given = _given(engine, document)
            if waits:
                answer = await _evaluate_in_time(engine, given, timeout)
            else:
                answer = engine.evaluate(EntryPoint.DECISION, given, timeout=timeout)
            _check_time(engine, started, timeout)
            verdict = _believe(answer, engine, document)
            if cache is not None:
                permitted = found.permitted is not None and _permits(engine, verdict, document)
                cache.put(engine, found, verdict, permitted=permitted)
            return verdict
        except BaseException as error:
            if waits and isinstance(error, TimeoutError):
                error = _too_late(timeout)
            return _failure(error, engine)

    def _only_observes(self, document: PolicyInput) -> bool:
        """Return whether this tool's decisions are recorded only: the last glob that matches decides,
        one with ``!`` not.

        By id or full name alone: a short name is one that another tool could borrow.
        """
        if self.mode is PolicyMode.SHADOW or not self._shadow_tools:
            return self.mode is PolicyMode.SHADOW
        decided_by = ""
        try:
            tool = document["tool"]
            names = (tool["id"], f"{tool['namespace']}.{tool['name']}")
            for glob in self._shadow_tools:
                pattern = glob.removeprefix("!")
                if any(fnmatchcase(name, pattern) for name in names):
                    decided_by = glob
        except (KeyError, TypeError):  # no document that could be decided
            return False
        return bool(decided_by) and not decided_by.startswith("!")

    # --- the other entry points -------------------------------------------------------------------

    def visible(self, document: PolicyInput) -> bool:
        """Return whether the tool may be on the surface; a failure hides it, and what only observes
        hides nothing.
        """
        if self._only_observes(document):
            return True
        return self._query(
            document,
            EntryPoint.VISIBLE,
            lambda answer, _: normalise_visible(answer),
            lambda _: False,
        )

    def why_hidden(self, document: PolicyInput) -> str:
        """Return why a tool is not visible, in the policy's word; an empty text where it
        gives none.
        """
        return self._query(
            document,
            SURFACE_REASON,
            lambda answer, _: answer.value if isinstance(answer.value, str) else "",
            lambda _: "",
        )

    def _query(
        self,
        document: PolicyInput,
        entry_point: str,
        read: Callable[[EngineAnswer, PolicyEngine], _Answer],
        failed: Callable[[BaseException], _Answer],
    ) -> _Answer:
        try:
            validate_input(document)
            if not self.engines:
                raise PolicyEvaluationError(
                    "no policy engine is configured", cause=FailClosedCause.NO_DECISION
                )
            engine = self.engines[0]
            return read(
                engine.evaluate(entry_point, _given(engine, document), timeout=self._timeout),
                engine,
            )
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            return failed(error)


def _permits(engine: PolicyEngine, verdict: Verdict, document: PolicyInput) -> bool:
    """Return whether a verdict is the answer of ``EntryPoint.PERMITTED``, which a decision is wherever
    that allows.
    """
    if verdict.behavior is not Behavior.ALLOW or verdict.fail_closed is not None:
        return False
    try:
        answer = engine.evaluate(EntryPoint.PERMITTED, document, timeout=DEFAULT_TIMEOUT)
    except PolicyError:  # an engine that was closed or took too long here has decided before
        return False
    return isinstance(answer.value, dict) and answer.value.get("behavior") == Behavior.ALLOW


def _may_read(engine: Any, path: Path, mode: str, kind: str) -> bool:
    known = {"session": {"mode": mode}, "tool": {"kind": kind}}
    proven = engine.reads(EntryPoint.DECISION, known)
    return proven is None or _overlaps(path, proven[1].paths)


def _overlaps(path: Path, others: Iterable[Path]) -> bool:
    """Return whether a path is, contains or lies below one of the others."""
    return any(path[: len(other)] == other[: len(path)] for other in others)


def _joined(duty: SandboxDuty | None, other: SandboxDuty | None) -> SandboxDuty | None:
    return other if duty is None else duty.joined(other)


def _nobody_decided(engine: PolicyEngine | None, verdict: Verdict | None) -> Verdict:
    """Return the denial of a call that every engine of the chain passed on, or for which there is
    none.
    """
    if engine is None or verdict is None:
        return no_decision()
    return no_decision(
        engine=engine.name, revision=verdict.revision, bundle_digest=verdict.bundle_digest
    )


async def _evaluate_in_time(
    engine: PolicyEngine, document: PolicyInput, timeout: float
) -> EngineAnswer:
    """Evaluate without blocking the loop; what a remote engine does is canceled at its time."""
    limit = max(timeout, 0.0) if engine.capabilities.remote else None
    async with asyncio.timeout(limit):
        return await engine.aevaluate(EntryPoint.DECISION, document, timeout=timeout)


def _too_late(timeout: float) -> PolicyTimeout:
    return PolicyTimeout(f"the decision took longer than {max(timeout, 0.0):.3g} s")


def _check_time(engine: PolicyEngine, started: float, timeout: float) -> None:
    """Throw away an answer that came too late, unless its engine counts another time."""
    if time.perf_counter() - started > timeout and not engine.capabilities.counts_cpu_time:
        raise _too_late(timeout)


def _given(engine: PolicyEngine, document: PolicyInput) -> PolicyInput:
    """Return the document that an engine gets: one of its own, unless it is known to write into none.

    What another engine of the chain reads, and what runs, must be what was asked about; and the
    parts about tool and actor are the same objects from call to call.
    """
    if type(engine).__module__.startswith(_OWN):
        return document
    session = document.get("session")
    past = session.get("history") if isinstance(session, dict) else None
    if not past:
        return cast(PolicyInput, snapshot(document))
    # up to 200 entries of one form: copied by it
    copied = snapshot({**document, "session": {**document["session"], "history": []}})
    copied["session"]["history"] = [
        {**entry, "targets": list(entry["targets"]), "same": list(entry["same"])} for entry in past
    ]
    return cast(PolicyInput, copied)


def _reduced(engine: PolicyEngine, packages: Sequence[str]) -> PolicyEngine:
    shadowing = getattr(engine, "shadowing", None)
    if shadowing is None:
        raise ConfigurationError(
            f"the engine {engine.name} can't leave rule packages out; build the bundle without them"
        )
    reduced: PolicyEngine = shadowing(packages)
    return reduced


def _describe(engine: PolicyEngine) -> dict[str, Any]:
    return {"name": engine.name, "revision": engine.revision, "remote": engine.capabilities.remote}


def _believe(answer: EngineAnswer, engine: PolicyEngine, document: PolicyInput) -> Verdict:
    verdict = normalise(answer, engine=engine.name)
    # compared with the decision's own time, so that a replay decides alike
    if verdict.expires_at is not None and (
        datetime.fromisoformat(verdict.expires_at) <= datetime.fromisoformat(document["time"])
    ):
        raise PolicyEvaluationError(
            "the policy's decision has already expired", cause=FailClosedCause.MALFORMED
        )
    return verdict


def _observed(verdict: Verdict) -> Verdict:
    """Return what a governor in shadow mode acts on: an allow that carries what would have been
    decided.

    What that decision would have changed or limited (arguments, roles, an expiry) is no part of it.
    """
    return Verdict(
        behavior=Behavior.ALLOW,
        mode=PolicyMode.SHADOW,
        shadow=verdict,
        source=verdict.source,
        reason_type=verdict.reason_type,
        rule_ref=verdict.rule_ref,
        message=verdict.message,
        rule_refs=verdict.rule_refs,
        redact_input=verdict.redact_input,
        redact_result=verdict.redact_result,
        engine=verdict.engine,
        revision=verdict.revision,
        bundle_digest=verdict.bundle_digest,
        opa_decision_id=verdict.opa_decision_id,
        cached=verdict.cached,
        fail_closed=verdict.fail_closed,
    )
