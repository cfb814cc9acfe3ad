"""Governor: one configuration, wired together once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import aclosing, closing
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from opentelemetry.trace import INVALID_SPAN

from agenttool_otel.approvals.service import Approvals
from agenttool_otel.approvals.types import Approver, AsyncApprover
from agenttool_otel.call.approval_requests import Questions
from agenttool_otel.call.batch import Batch, BatchCall
from agenttool_otel.call.cancel import cancel_call, interrupted
from agenttool_otel.call.complete import (
    NOTHING,
    acomplete_call,
    ainterrupt_call,
    complete_call,
    interrupt_call,
)
from agenttool_otel.call.delivery import Delivery
from agenttool_otel.call.pending.required_action import RequiredAction
from agenttool_otel.call.recording.redaction import CallRedaction
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.resume import aresume_call, resume_call
from agenttool_otel.call.running.handle import CancelState, RunningCall
from agenttool_otel.catalog import GovernOptions, Registry
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import ContextDefaults
from agenttool_otel.context.settings import Settings
from agenttool_otel.facts.classified import IntentCheck
from agenttool_otel.govern.discovery import Discovery
from agenttool_otel.govern.governed import govern_with
from agenttool_otel.govern.opening import (
    approvals_opener,
    fact_environment,
    open_decisions,
    open_results,
    open_sessions,
    protected_places,
    telemetry_settings,
    use_profiles,
)
from agenttool_otel.govern.option_types import check_option_types
from agenttool_otel.govern.typing import Governed, GovernsNext
from agenttool_otel.hooks import Hooks
from agenttool_otel.names import AbortReason, Attr, Event, Label
from agenttool_otel.policy.bundles.tool_lists import ToolLists, ToolNames
from agenttool_otel.policy.types import PolicyEngine
from agenttool_otel.records import SchedulerPolicy, ToolResult
from agenttool_otel.redaction import RedactionSettings, Redactor
from agenttool_otel.results.errors.mapper import ErrorMapper, MappingTarget
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.persistence.read_result import MAX_PAGE
from agenttool_otel.results.transform import Transform
from agenttool_otel.telemetry import Telemetry, TelemetrySettings

if TYPE_CHECKING:  # engines and stores are imported when a Governor opens one
    from agenttool_otel.approvals.approvers import Callback
    from agenttool_otel.approvals.store.store import ApprovalStore
    from agenttool_otel.call.phases.pipeline import Pipeline
    from agenttool_otel.govern.builtin_tools import OwnTool
    from agenttool_otel.policy.bundles.source import ReloadResult
    from agenttool_otel.policy.cache import DecisionCache
    from agenttool_otel.policy.open import Policy
    from agenttool_otel.preflight.posture import Posture
    from agenttool_otel.results.stores.store import ResultStore

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Governor(Discovery):
    """One configuration of policy, redaction, results, approvals, hooks and telemetry.

    Args:
        policy: the bundle's path, a loaded Bundle, an engine, or a chain of engines; what the
            settings name (normally the stock bundle in the embedded engine) where not given.
        policy_data: data merged over the bundle's, from the root; for example ``{"agenttool":
            {"settings": {"preset": "strict"}}}``.
        extension: path of a bundle with rules of your own, joined to the stock bundle.
        settings: settings; read from the environment where not given.
        approver: who is asked in place: an approver, or a function of the request (see
          ``CallbackApprover``).
        approvals: the approval store or its URL.
        results: keeps large results; a local directory where not given.
        redactor: the redactor.
        telemetry: telemetry settings; made of ``settings`` where not given.
        hooks: the hook registry.
        errors: what your own exceptions are to the standard, by class or qualified name; see
          ``ErrorMapper.register``.
        shadow_engines: at most one engine whose decisions are recorded beside the real ones; the
            setting ``shadow_policy`` names one by its place.
        shadow_packages: rule packages whose denials and asks are recorded and not acted on; instead
          of a shadow engine.
        intent_check: a classifier that is asked whether the user's words want a call, before a
          person is.
        options: further settings by name (see Settings); they win over the environment.

    Raises:
        PolicyLoadError: the policy can't be used.
        ConfigurationError: an option has another type, or a setting can't be used.
    """

    _private_results: Callable[[], object] | None = None
    _permission_tools: tuple[OwnTool, OwnTool] | None = None

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        policy_data: Mapping[str, Any] | None = None,
        extension: str | Path | None = None,
        settings: Settings | None = None,
        approver: Approver | AsyncApprover | Callback | None = None,
        approvals: ApprovalStore | str | None = None,
        results: ResultKeeper | None = None,
        redactor: Redactor | None = None,
        telemetry: TelemetrySettings | None = None,
        hooks: Hooks | None = None,
        errors: Mapping[type[BaseException] | str, MappingTarget] | None = None,
        shadow_engines: Sequence[PolicyEngine] = (),
        shadow_packages: Sequence[str] = (),
        intent_check: IntentCheck | None = None,
        **options: Any,
    ) -> None:
        from agenttool_otel.policy.cache import DecisionCache
        from agenttool_otel.policy.decider import Decider
        from agenttool_otel.policy.open import open_engines

        check_option_types(
            policy=policy,
            policy_data=policy_data,
            extension=extension,
            settings=settings,
            approvals=approvals,
            results=results,
            redactor=redactor,
            telemetry=telemetry,
            errors=errors,
            shadow_engines=shadow_engines,
            shadow_packages=shadow_packages,
            intent_check=intent_check,
        )
        settings = settings if settings is not None and not options else Settings.load(**options)
        use_profiles(settings)
        cache = DecisionCache(settings.policy_cache) if settings.policy_cache else None
        opened = open_engines(
            settings,
            policy,
            data=policy_data,
            extension=extension,
            on_reload=self._reloaded,
            stated=options,
        )
        engines = opened.engines
        self._close_sources = opened.close
        decider = Decider(
            engines,
            mode=settings.policy_mode,
            timeout=settings.policy_timeout,
            cache=cache,
            shadow_engines=(*shadow_engines, *opened.shadow),
            shadow_packages=shadow_packages,
            shadow_tools=settings.shadow_tools,
        )
        configured = bool(approvals or settings.approvals_url)
        recording = Telemetry(telemetry or telemetry_settings(settings))
        super().__init__(
            settings=settings,
            registry=Registry(),
            redactor=redactor or Redactor(RedactionSettings(pii=settings.redact_pii)),
            telemetry=recording,
            sessions=open_sessions(settings),
            decider=decider,
            approvals=Approvals(
                _approver(approver),
                approvals_opener(approvals, settings),
                recording,
                configured,
            ),
            results=results
            or ResultKeeper(self._open_results, max_inline_chars=settings.max_inline_chars),
            errors=ErrorMapper(redact=self.clean),
            hooks=hooks,
            effective=ContextDefaults(settings).fill,
        )
        for exception, error in (errors or {}).items():
            self.errors.register(exception, error)
        self._first_engine = engines[0] if engines else None
        self._read_lists()
        self._decisions = open_decisions(settings.decisions, recording)
        self._intent_check = intent_check
        self.pipeline = self._pipeline()
        if cache is not None:
            self.telemetry.instruments.observe_cache(self, partial(_lookups, cache))
        self._read_result: OwnTool | None = None

    def _pipeline(self) -> Pipeline:
        from agenttool_otel.call.phases.pipeline import Pipeline

        return Pipeline(
            services=self,
            span=CallSpan(self.telemetry, CallRedaction(self.telemetry, self.redactor)),
            sessions=self.sessions,
            environment=partial(fact_environment, self.settings, protected_places(self.settings)),
            questions=Questions(self.redactor, self.settings.approvals_ttl),
            delivery=Delivery(
                self.redactor, self.results, Transform(self.clean, self._clean_value)
            ),
            errors=self.errors,
            hooks=self.hooks,
            clean=self.clean,
            known_tools=self._known_tools,
            before=self._look_at_lists,
            approvals=self.approvals,
            require_context=self.settings.require_context,
            lock_timeout=self.settings.lock_timeout,
            decisions=self._decisions,
            intent_check=self._intent_check,
        )

    # --- governing --------------------------------------------------------------------------------

    @overload
    def govern(
        self, target: Callable[P, R], /, **options: Unpack[GovernOptions]
    ) -> Governed[P, R]: ...

    @overload
    def govern(self, target: T, /, **options: Unpack[GovernOptions]) -> T: ...

    @overload
    def govern(self, **options: Unpack[GovernOptions]) -> GovernsNext: ...

    # mypy does not see that the third form gives no target, as it does for the function of the same
    # forms
    def govern(self, target: Any = None, /, **options: Unpack[GovernOptions]) -> Any:  # type: ignore[misc]
        """Put a tool under this Governor; see ``agenttool_otel.govern``.

        Args:
            target: the tool.
            options: facts of the tool.
        """
        return govern_with(self, target, options)

    def read_result_tool(self, *, max_page: int = MAX_PAGE) -> OwnTool:
        """Return the governed tool ``read_result``, with which an agent pages through what was too
        large to show.

        It is decided like every other call; its own output is never persisted again, and a payload
        is shown to the tenant and session that it belongs to alone. Give it to an agent beside the
        other tools.

        Args:
            max_page: most bytes of a page.

        Returns:
            The governed function ``read_result(reference, offset=0, limit=8192)``; the same one
            each time.
        """
        if self._read_result is None:
            from agenttool_otel.govern.builtin_tools import read_result_of

            self._read_result = read_result_of(self, max_page)
        return self._read_result

    def resume(self, invocation_id: str) -> ToolResult:
        """Continue a paused call; see ``agenttool_otel.call.resume``.

        Args:
            invocation_id: the invocation.
        """
        return resume_call(self, invocation_id)

    async def aresume(self, invocation_id: str) -> ToolResult:
        """The same without blocking the event loop.

        Args:
            invocation_id: the invocation.
        """
        return await aresume_call(self, invocation_id)

    def complete(
        self, invocation_id: str, result: Any = NOTHING, *, error: Exception | str | None = None
    ) -> ToolResult:
        """Take the result of a custom tool's call, which was permitted here and ran elsewhere.

        With an approval store that outlives the process it may have been permitted by any process
        that shares the store; this one then needs the tool, declared as it was there.

        Args:
            invocation_id: the invocation, from ``ResultRequired`` or the envelope's
              ``requires_action``.
            result: what the tool returned.
            error: what went wrong, instead of a result.

        Returns:
            The terminal envelope.

        Raises:
            InvocationNotFound: no call of that id waits for a result.
            InvocationConflict: it was completed or interrupted already.
            ResultInvalid: the result does not fit the tool's output schema; the call waits on.
            UnknownTool: another process permitted it, and this one has no tool of that id; the call
              waits on.
            ToolChanged: another process permitted it, and its tool is declared otherwise here; the
              call waits on.
            ApprovalStoreError: the store keeps the call and can't decide who is first; the call waits
              on.
            TypeError: neither a result nor an error was given, or both.
        """
        return complete_call(self, invocation_id, result, error)

    async def acomplete(
        self, invocation_id: str, result: Any = NOTHING, *, error: Exception | str | None = None
    ) -> ToolResult:
        """The same without blocking the event loop.

        Args:
            invocation_id: the invocation.
            result: what the tool returned.
            error: what went wrong, instead of a result.
        """
        return await acomplete_call(self, invocation_id, result, error)

    def interrupt(self, invocation_id: str, reason: str) -> ToolResult:
        """Clear a call that waits for an approval or for a result, and record why.

        Args:
            invocation_id: the invocation.
            reason: why; redacted before it is stored or shown.

        Returns:
            The terminal envelope: canceled.

        Raises:
            InvocationNotFound: no call of that id waits.
            InvocationConflict: it was completed or interrupted already.
            ApprovalConflict: its approval was rejected, used, or ended otherwise already.
            ApprovalStoreError: the store failed; the call waits on.
        """
        return interrupt_call(self, invocation_id, reason)

    async def ainterrupt(self, invocation_id: str, reason: str) -> ToolResult:
        """The same without blocking the event loop.

        Args:
            invocation_id: the invocation.
            reason: why.
        """
        return await ainterrupt_call(self, invocation_id, reason)

    # --- several calls, and calls that go on ------------------------------------------------------

    def batch(
        self,
        calls: Iterable[BatchCall],
        *,
        policy: SchedulerPolicy | None = None,
        executor: Executor | None = None,
    ) -> list[ToolResult]:
        """Run several calls, those together that may run together, and return their results in
        input order.

        Args:
            calls: the calls.
            policy: how they run together; the standard's defaults where not given.
            executor: where the tools' bodies run: threads, processes, or a cluster's executor;
                threads of the batch's own where not given. Decisions are always made here.

        Returns:
            A result for each call, also for one that never ran.

        Raises:
            TypeError: a tool is asynchronous.
            ConfigurationError: a call is of a tool of another Governor, or depends on a later one.
        """
        return _in_order(Batch(self, calls, policy, executor).stream())

    async def abatch(
        self,
        calls: Iterable[BatchCall],
        *,
        policy: SchedulerPolicy | None = None,
        executor: Executor | None = None,
    ) -> list[ToolResult]:
        """The same without blocking the event loop; asynchronous tools run in it.

        Args:
            calls: the calls.
            policy: how they run together.
            executor: where bodies of plain functions run.
        """
        stream = Batch(self, calls, policy, executor).astream()
        return _in_order([ready async for ready in stream])

    def batch_stream(
        self,
        calls: Iterable[BatchCall],
        *,
        policy: SchedulerPolicy | None = None,
        executor: Executor | None = None,
    ) -> Iterator[ToolResult]:
        """Run several calls and give each result when it is there and its turn has come.

        Who leaves early ends the batch: no further call begins, and those that may be stopped are.

        Args:
            calls: the calls.
            policy: how they run together; it also sets whether results keep the input's order.
            executor: where the tools' bodies run.
        """
        with closing(Batch(self, calls, policy, executor).stream()) as stream:
            for _, result in stream:
                yield result

    async def abatch_stream(
        self,
        calls: Iterable[BatchCall],
        *,
        policy: SchedulerPolicy | None = None,
        executor: Executor | None = None,
    ) -> AsyncIterator[ToolResult]:
        """The same without blocking the event loop.

        Args:
            calls: the calls.
            policy: how they run together.
            executor: where bodies of plain functions run.
        """
        async with aclosing(Batch(self, calls, policy, executor).astream()) as stream:
            async for _, result in stream:
                yield result

    def cancel(
        self, invocation_id: str, reason: str, *, abort_reason: str = AbortReason.USER_INTERRUPTION
    ) -> CancelState:
        """Ask a call to stop: one that goes on, or that waits for an approval or a result.

        Args:
            invocation_id: the invocation.
            reason: why; redacted before it is stored or shown.
            abort_reason: the standard's word: ``user_interruption``, ``sibling_error``,
                ``timeout``, ``fallback`` or ``runtime_shutdown``.

        Returns:
            What has become of the request; while the call goes on it changes with it. For one of
            the last 1,024 calls that ended in this process it has failed.

        Raises:
            InvocationNotFound: no call of that id goes on or waits.
        """
        return cancel_call(self, invocation_id, reason, AbortReason(abort_reason)) or interrupted(
            self.interrupt(invocation_id, reason)
        )

    async def acancel(
        self, invocation_id: str, reason: str, *, abort_reason: str = AbortReason.USER_INTERRUPTION
    ) -> CancelState:
        """The same without blocking the event loop.

        Args:
            invocation_id: the invocation.
            reason: why.
            abort_reason: the standard's word.
        """
        return cancel_call(self, invocation_id, reason, AbortReason(abort_reason)) or interrupted(
            await self.ainterrupt(invocation_id, reason)
        )

    def running(self) -> list[RunningCall]:
        """Return the calls that go on in this process, oldest first: those whose body runs, and those
        that wait in a queue or for an answer in place.

        Calls that were paused are in the approval store, and those of custom tools in
        ``required_actions``.
        """
        handles = self.pipeline.running.copy().values()  # other threads begin and end calls
        return sorted((handle.describe() for handle in handles), key=attrgetter("planned_at"))

    @property
    def required_actions(self) -> Sequence[RequiredAction]:
        """The calls of custom tools that wait for a result, oldest first: of this process, and of
        all that share its approval store, if it has one that outlives the process. While the store
        can't be read, only this process's.
        """
        return self.pipeline.required.list()

    async def arequired_actions(self) -> Sequence[RequiredAction]:
        """As ``required_actions``, without blocking the event loop."""
        return await asyncio.to_thread(self.pipeline.required.list)

    # --- preflight --------------------------------------------------------------------------------

    def describe(self) -> Posture:
        """Describe the permission posture of the context in force: what waits, what is always asked
        about or blocked.

        Every tool is put before the policy with plain arguments; nothing is run, asked or counted.
        """
        from agenttool_otel.preflight.posture import describe

        return describe(self)

    def warm(self) -> None:
        """Do now what the first calls would do: load the parsers, the approval store and each
        tool's first decision.

        For programs that would rather start later than answer the first call late. Call it when the
        tools are governed, in the thread that will call them: every tool is put before the policy
        with plain arguments; nothing is run, asked or counted.
        """
        self.redactor.redact_text("")  # reads its tables
        self.describe()

    def write_posture(self, folder: str | Path) -> list[Path]:
        """Write the posture for agents that read files; see
        ``agenttool_otel.preflight.posture_files.write_posture``.

        Args:
            folder: where ``permission-posture.json``, ``permission-posture.md`` and
              ``managed-tools.json`` go.

        Returns:
            The files.

        Raises:
            OSError: a file can't be written.
        """
        from agenttool_otel.preflight.posture_files import write_posture

        return write_posture(self, folder)

    def permission_tools(self) -> tuple[OwnTool, OwnTool]:
        """Return the governed tools ``permissions_check`` and ``permissions_describe``, for a model
        to call.

        They are decided and recorded like every call, but spend no budget: asking what one may do
        must not be dear.

        Returns:
            The governed functions ``permissions_check(tool, arguments=None)`` and
            ``permissions_describe()``; the same ones each time.
        """
        if self._permission_tools is None:
            from agenttool_otel.govern.builtin_tools import permission_tools_of

            self._permission_tools = permission_tools_of(self)
        return self._permission_tools

    # --- what the pipeline asks for ---------------------------------------------------------------

    def tool_added(self, spec: ToolSpec) -> None:
        """Warn, once for each tool, where the settings believe a sandbox that it states.

        Args:
            spec: the tool.
        """

    def _read_lists(self) -> None:
        """Read which settings name tools, to compare them with the tools at the next call."""
        # the rules of an OPA server are not here
        bundle = getattr(self._first_engine, "bundle", None)
        self._lists = ToolLists(bundle, {"shadow_tools": self.settings.shadow_tools})
        self._looked_at = -1

    def _look_at_lists(self) -> None:
        """Compare settings that name tools with the tools that there are; looked at again when
        there are others.
        """
        added = 0
        for registry in self.registries:
            added += registry.added
        if added == self._looked_at:
            return
        self._looked_at = added
        tools = [tool.spec for tool in self.tools]
        for spec in tools:
            self.tool_added(spec)
        self._lists.warn_of_entries(
            ToolNames(
                (spec.tool_id, f"{spec.namespace}.{spec.name}"),
                (spec.name, *spec.aliases),
            )
            for spec in tools
        )

    def _known_tools(self) -> dict[str, dict[str, Any]]:
        return {
            tool.spec.name: {
                "name": tool.spec.name,
                "kind": tool.spec.declaration.tool_kind,
                "access_kinds": tool.spec.permission.access_kinds,
                "argument_names": list(tool.spec.check.schema.get("properties", {})),
            }
            for tool in self.tools
        }

    def _clean_value(self, value: Any, pointer: str) -> Any:
        del pointer
        return self.redactor.redact(value).value

    def close(self) -> None:
        """Release engines, stores and connections; sinks write what waits, a private directory of
        results goes.
        """
        self._close_sources()
        self.decider.close()
        self.approvals.close()
        self.sessions.close()
        self.telemetry.flush()
        if self._decisions is not None:
            self._decisions.close()
        if self._private_results is not None:
            self._private_results()

    def close_on_signals(self, *numbers: int) -> None:
        """Close this Governor on a signal to end the process, and then let it end as it would have.

        Python runs no exit handlers at SIGTERM, which is how containers are stopped; what waits in
        sinks and in the providers of telemetry would be lost. Call it once, in the main thread,
        after your own handlers are set: a handler that is there runs afterwards.

        Args:
            numbers: the signals; SIGTERM where none is given.

        Raises:
            ValueError: called in another thread than the main one.
        """
        from agenttool_otel.govern.signals import close_on_signals

        close_on_signals(self, self.close, numbers)

    def _reloaded(self, result: ReloadResult) -> None:
        """Record in telemetry that a new bundle came into use, or was refused."""
        done = "succeeded" if result.status == "activated" else "failed"
        if result.status == "activated":
            self._read_lists()
        telemetry = self.telemetry
        telemetry.count(telemetry.instruments.policy_reloads, 1, {Label.RELOAD_RESULT: done})
        attributes = {Label.RELOAD_RESULT: done, Attr.POLICY_REVISION: result.revision}
        telemetry.events.emit(INVALID_SPAN, Event.POLICY_RELOADED, attributes)

    def _open_results(self) -> ResultStore:
        store, self._private_results = open_results(self.settings.results_dir, self)
        return store


def _approver(
    approver: Approver | AsyncApprover | Callback | None,
) -> Approver | AsyncApprover | None:
    if approver is None:
        return None
    # a program without one does not pay for them
    from agenttool_otel.approvals.approvers import build_approver

    return build_approver(approver)


def _in_order(results: Iterable[tuple[int, ToolResult]]) -> list[ToolResult]:
    return [result for _, result in sorted(results, key=itemgetter(0))]


def _lookups(cache: DecisionCache) -> list[tuple[int, dict[str, str]]]:
    stats = cache.stats()
    counts = (("hit", stats.hits), ("miss", stats.misses), ("bypass", stats.uncacheable))
    return [(count, {Label.CACHE_RESULT: result}) for result, count in counts]
