"""Which calls of a tool go straight: everything is looked at before anything is counted or recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agenttool_otel.call.binding import PlainArguments, plain_arguments
from agenttool_otel.call.drivers import unsupported_loop
from agenttool_otel.call.invocation import Established
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.straight.ordinary import is_ordinary_tool
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import (
    AgentContext,
    current_context,
    current_native_call,
)

if TYPE_CHECKING:  # loaded with the first plan
    from agenttool_otel.call.straight.call import FrameworkCall, StraightCall
    from agenttool_otel.call.straight.plan import Plan

_MAX_PLANS: Final = 256
_NEVER_PLANNED: Final[Any] = object()

_open = True
"""Whether any call goes straight; a test that compares both ways closes it."""


class Begun(NamedTuple):
    """What a look at a call came to."""

    call: StraightCall | None = None  # which goes straight
    established: Established | None = None  # the facts of one that does not, if they were looked at


NOT_BEGUN: Final = Begun()


class StraightWay:
    """The straight way of the calls of one tool.

    Args:
        spec: the tool.
        is_async: whether calling it gives an awaitable.
    """

    __slots__ = ("_call", "_is_async", "_is_ordinary", "_plans", "_spec")

    _call: type[StraightCall]  # set with the first plan

    def __init__(self, spec: ToolSpec, *, is_async: bool) -> None:
        self._spec = spec
        self._is_async = is_async
        self._is_ordinary: bool | None = None  # its records are made at the first call
        # by the id of the context, with the context: it may hold dicts, which have no hash
        self._plans: dict[int, tuple[Runtime, AgentContext, Plan | None]] = {}

    def begin(
        self,
        runtime: Runtime,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        foreign: FrameworkCall | None = None,
    ) -> Begun:
        """Begin a call, if it goes straight. Of any other nothing is counted or recorded yet: its facts
        are returned, if they were looked at.

        Args:
            runtime: the Governor in charge.
            function: what runs, bound to its instance.
            args: its arguments.
            kwargs: the named ones.
            foreign: what else a call of a framework's tool is.
        """
        if self._is_ordinary is False or not _open:
            return NOT_BEGUN
        try:
            begun = self._decide(runtime, function, args, kwargs, foreign)
            if begun.call is not None:
                begun.call.begin()
        except Exception:
            # nothing is counted; what is wrong with it is the pipeline's to report
            return NOT_BEGUN
        return begun

    def is_open(self, runtime: Runtime, context: AgentContext) -> bool:
        """Return whether a call may go straight, before its arguments are read.

        Args:
            runtime: the Governor in charge.
            context: who calls.
        """
        try:
            return _open and self._plan(runtime, context) is not None
        except Exception:
            return False  # what is wrong is the pipeline's to report

    def _decide(
        self,
        runtime: Runtime,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        foreign: FrameworkCall | None = None,
    ) -> Begun:
        created_ns = time.time_ns()
        t0 = time.perf_counter()
        context = None if foreign is None else foreign.context
        plan = self._plan(runtime, context or runtime.effective(current_context()))
        if plan is None or not plan.holds_now():
            return NOT_BEGUN
        if self._is_async and unsupported_loop() is not None:
            return NOT_BEGUN
        if foreign is not None:
            given, arguments = foreign.given, foreign.arguments
            native_call_id = foreign.native_call_id
        else:
            read = self._read(args, kwargs)
            if read is None:
                return NOT_BEGUN
            given, arguments = read
            native_call_id = current_native_call()
        session = plan.session()
        if session is None:
            return NOT_BEGUN
        prepared = plan.prepared(arguments, session)
        if prepared is None:
            return NOT_BEGUN
        facts = plan.facts(arguments, session)
        asked = time.perf_counter()
        decided = plan.decision(prepared, arguments, facts, small=given.small)
        if decided is None:
            if given.small and plan.small_defaults:
                return Begun(established=Established(plan.context, arguments, facts))
            return NOT_BEGUN
        call = self._call(
            plan,
            session,
            prepared,
            decided,
            time.perf_counter() - asked,
            function,
            self._is_async,
            args,
            kwargs,
            given.bound,
            given.shown,
            arguments,
            facts,
            native_call_id,
            created_ns,
            t0,
            foreign,
        )
        return Begun(call)

    def _read(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[PlainArguments, dict[str, Any]] | None:
        """Return the arguments of a Python call as they are given, and with the defaults."""
        parameters = self._spec.parameters
        if parameters is None:
            return None
        given = plain_arguments(parameters, args, kwargs)
        if given is None or not self._spec.check.is_valid(given.shown):
            return None
        if not parameters.defaults:
            return given, given.shown
        return given, {**parameters.defaults, **given.shown}

    def _plan(self, runtime: Runtime, context: AgentContext) -> Plan | None:
        """Return the plan of a context in which the tool is called for the second time, at least."""
        if self._is_ordinary is None:
            self._is_ordinary = is_ordinary_tool(self._spec)
        if not self._is_ordinary:
            return None
        known = self._plans.get(id(context))
        if known is None or known[0] is not runtime or known[1] is not context:
            # of a session with one call, a plan would cost more than it saves
            if len(self._plans) >= _MAX_PLANS:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[id(context)] = (runtime, context, _NEVER_PLANNED)
            return None
        if known[2] is not _NEVER_PLANNED:
            return known[2]
        from agenttool_otel.call.straight.call import StraightCall
        from agenttool_otel.call.straight.plan import plan_of

        self._call = StraightCall
        plan = plan_of(self._spec, context, runtime, is_async=self._is_async)
        self._plans[id(context)] = (runtime, context, plan)
        return plan
