"""The hook registry: which hooks run when, for which tools, in which order, and how long they may
take.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.hooks.matching import Matcher, ToolFacts, patterns
from agenttool_otel.names import HookEvent
from agenttool_otel.values.forks import new_lock

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds that a hook may take where nothing is stated."""

BEFORE: Final = frozenset(
    {HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST, HookEvent.PERMISSION_DECISION}
)
"""Events before the tool's body: what fails there can still keep the tool from running."""

OnFailure = Literal["block", "continue"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """One registered hook.

    Attributes:
        hook_id: its id, in records and events.
        event: when it runs.
        function: takes a HookContext, returns outputs.
        is_async: whether it is a coroutine function or an asynchronous generator function.
        matcher: for which tools.
        order: lower runs earlier; of equals the one that was registered earlier.
        timeout: seconds it may take.
        on_failure: what its failure means: ``block`` denies the call, ``continue`` only records it.
        owns_output: whether it may replace the output of any tool.
    """

    hook_id: str
    event: HookEvent
    function: Callable[..., Any]
    is_async: bool
    matcher: Matcher
    order: float
    timeout: float
    on_failure: OnFailure
    owns_output: bool


class HookOptions(TypedDict, total=False):
    """Which tools a hook is for, when it runs and what its failure means."""

    tool: str | Sequence[str] | None
    """Globs on the tool's id, name or an alias; any tool where not given."""
    namespace: str | Sequence[str] | None
    """Globs on its namespace."""
    kind: str | Sequence[str] | None
    """Globs on its kind."""
    order: float
    """Lower runs earlier; 0 where not given."""
    timeout: float
    """Seconds that it may take; a hook that takes longer has failed."""
    on_failure: OnFailure | None
    """``block``, the default before the tool's body: a hook that raises, hangs or answers nonsense
    denies the call; ``continue``: that is only recorded. After the body nothing can be blocked.
    """
    owns_output: bool
    """Let a post_tool_use hook replace the output of a tool that is not remote."""
    hook_id: str | None
    """Stable id; the function's qualified name where not given."""


class Hooks:
    """A registry of hooks; safe for threads, and one may be shared by several Governors.

    ``hooks.on("pre_tool_use", tool="write_*")`` decorates a function that takes a HookContext. A
    hook that is registered or removed while calls run counts from the next phase of each call on.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._hooks: tuple[Hook, ...] = ()
        self._matching: dict[tuple[HookEvent, ToolFacts], tuple[Hook, ...]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._hooks)

    def __iter__(self) -> Any:
        return iter(self._hooks)

    def on(self, event: HookEvent | str, **options: Unpack[HookOptions]) -> Callable[[F], F]:
        """Register the decorated function; it stays what it is.

        Args:
            event: pre_tool_use, post_tool_use, post_tool_use_failure, permission_request,
                permission_decision or result_persistence.
            options: which tools, when and how; see HookOptions.

        Raises:
            ConfigurationError: an argument can't be used, or the id is taken.
        """

        def register(function: F) -> F:
            self.add(function, event, **options)
            return function

        return register

    def add(
        self, function: Callable[..., Any], event: HookEvent | str, **options: Unpack[HookOptions]
    ) -> Hook:
        """Register a function; as ``on``, without the decorator.

        Args:
            function: takes a HookContext; returns an output, several, or nothing. May be a
                coroutine function, or a plain or asynchronous generator of outputs.
            event: see ``on``.
            options: which tools, when and how; see HookOptions.

        Raises:
            ConfigurationError: an argument can't be used, or the id is taken.
            TypeError: there is no such option.
        """
        when = _event(event)
        if unknown := options.keys() - HookOptions.__annotations__.keys():
            raise TypeError(f"a hook has no option {min(unknown)!r}")
        if not callable(function):
            raise ConfigurationError(f"a hook is a function, not {type(function).__name__}")
        _check(when, options)
        on_failure, hook_id = options.get("on_failure"), options.get("hook_id")
        matcher = Matcher(
            patterns("tool", options.get("tool")),
            patterns("namespace", options.get("namespace")),
            patterns("kind", options.get("kind")),
        )
        with self._lock:
            self._count += 1
            identity = hook_id or f"{_name(function)}#{self._count}"
            if any(hook.hook_id == identity for hook in self._hooks):
                raise ConfigurationError(f"there is a hook {identity!r} already")
            hook = Hook(
                hook_id=identity,
                event=when,
                function=function,
                is_async=_is_async(function),
                matcher=matcher,
                order=options.get("order", 0),
                timeout=float(options.get("timeout", DEFAULT_TIMEOUT)),
                on_failure=on_failure or ("block" if when in BEFORE else "continue"),
                owns_output=bool(options.get("owns_output", False)),
            )
            # stable: then registration
            self._hooks = tuple(sorted((*self._hooks, hook), key=attrgetter("order")))
            self._matching = {}
        return hook

    def remove(self, hook: Hook | str) -> bool:
        """Take a hook out.

        Args:
            hook: the hook or its id.

        Returns:
            Whether it was there.
        """
        identity = hook.hook_id if isinstance(hook, Hook) else hook
        with self._lock:
            kept = tuple(hook for hook in self._hooks if hook.hook_id != identity)
            found = len(kept) != len(self._hooks)
            self._hooks = kept
            self._matching = {}
        return found

    def matching(self, event: HookEvent, facts: ToolFacts) -> tuple[Hook, ...]:
        """Return the hooks of an event for a tool, in the order in which they run.

        Args:
            event: the event.
            facts: the tool.
        """
        # one mapping for look-up and entry, so that a stale answer never enters a fresh one
        known = self._matching
        if (found := known.get((event, facts))) is None:
            found = tuple(h for h in self._hooks if h.event is event and h.matcher.matches(facts))
            if len(known) < 10_000:
                known[event, facts] = found
        return found


def _check(event: HookEvent, options: HookOptions) -> None:
    timeout, order = options.get("timeout", DEFAULT_TIMEOUT), options.get("order", 0)
    on_failure = options.get("on_failure")
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, (int, float))
        or not 0 < timeout < float("inf")
    ):
        raise ConfigurationError("a hook's timeout is a positive number of seconds")
    if isinstance(order, bool) or not isinstance(order, (int, float)) or order != order:
        raise ConfigurationError("a hook's order is a number")
    if on_failure not in (None, "block", "continue"):
        raise ConfigurationError("on_failure is block or continue")
    if on_failure == "block" and event not in BEFORE:
        raise ConfigurationError(f"a {event.value} hook can't block: the tool has run")
    if options.get("owns_output") and event is not HookEvent.POST_TOOL_USE:
        raise ConfigurationError("only a post_tool_use hook owns an output")


def _event(event: HookEvent | str) -> HookEvent:
    try:
        return HookEvent(event)
    except ValueError:
        known = ", ".join(known.value for known in HookEvent)
        raise ConfigurationError(f"no hook event {event!r}; there are {known}") from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _is_async(function: Callable[..., Any]) -> bool:
    if _makes_awaitable(function):
        return True
    # an object that is called is asynchronous where its class's __call__ is
    return not inspect.isroutine(function) and _makes_awaitable(type(function).__call__)


def _makes_awaitable(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
