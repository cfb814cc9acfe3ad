"""Who is calling, for whom and in which session: the facts of a call that are not in its arguments.

They live in a context variable, so they follow asyncio tasks by themselves; ``carry_context`` takes
them (and the current span) into a thread pool, which copies no context of its own.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, Protocol, TypeVar

from cachetools import LRUCache

from agenttool_otel.context.settings import Settings
from agenttool_otel.context.validate import maybe_text, texts, truth, whole_object
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import Attr, ContextOrigin, ErrorClass, GenAI
from agenttool_otel.records import ExternalMapping
from agenttool_otel.values.forks import cached_property, new_lock

P = ParamSpec("P")
R = TypeVar("R")

_MAX_FILLED = 64
_ACTOR_KINDS = frozenset({"agent", "user", "service"})


class SurfaceInForce(Protocol):
    """A surface as a call uses it."""

    @property
    def surface_id(self) -> str:
        """Its id."""

    def refusal(self, tool_id: str, context: AgentContext) -> tuple[ErrorClass, str] | None:
        """Return why a tool can't be called from it; ``None`` where it can."""


@dataclass(frozen=True)
class Delegator:
    """Who started an agent, as a policy sees it (``input.actor.chain``).

    Attributes:
        actor: id of who it is.
        roles: its roles.
        tenant: tenant that it acts for.
        mode: its permission mode.
        roots: its directories.
    """

    actor: str
    roles: tuple[str, ...] = ()
    tenant: str | None = None
    mode: str = "default"
    roots: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "id": self.actor,
            "kind": _kind_of(self.actor),
            "roles": list(self.roles),
            "tenant": self.tenant,
            "mode": self.mode,
            "roots": list(self.roots),
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Delegator:
        """Return what ``document`` has written.

        Args:
            document: the JSON data.
        """
        return cls(
            actor=document["id"],
            roles=tuple(document["roles"]),
            tenant=document["tenant"],
            mode=document["mode"],
            roots=tuple(document["roots"]),
        )


@dataclass(frozen=True)
class AgentContext:
    """The facts that ``agent_context`` sets.

    Attributes:
        actor: id of who calls, best as ``agent:name``, ``user:name`` or ``service:name``.
        tenant: tenant that the actor acts for.
        roles: the actor's roles.
        session_id: conversation or task; also ``gen_ai.conversation.id``.
        agent_name: ``gen_ai.agent.name``; derived from an ``agent:`` actor when empty.
        mode: permission mode of the host, for example ``default`` or ``strict``.
        interactive: whether a person can answer an ask now.
        roots: directories that file tools should stay in.
        cwd: directory that the tools' relative paths start from; the process's own where not given.
        user_text: the user's words in this context; their tokens are the user's own to provenance.
        surface: id of the tool surface that the call is selected from.
        surface_in_force: that surface, where it refuses calls of other tools.
        within: the agents that this context's own is inside of, the outermost first.
        chain: who started the actor, the outermost first (``agent_context(parent=...)``).
        labels: short, low-cardinality facts for policies.
        evaluation: verdict of an evaluator (``status``, ``trend``, ``next_step``).
        resources: the application's state that calls are about, by name, as JSON data
          (``input.resources``).
        host: the host's own state for postures, which no policy sees: ``shell`` (``busy``,
            ``open``, ``currentCommand``, ``busyPlan``, ``recoveryPlan``) and ``contextPressure``.
        origin: whether it was stated, was not, or was lost on the way into a thread.
    """

    actor: str = ""
    tenant: str | None = None
    roles: tuple[str, ...] = ()
    session_id: str | None = None
    agent_name: str = ""
    mode: str = "default"
    interactive: bool = False
    roots: tuple[str, ...] = ()
    cwd: str | None = None
    user_text: tuple[str, ...] = ()
    surface: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    evaluation: Mapping[str, Any] | None = None
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False)
    host: Mapping[str, Any] | None = None
    origin: ContextOrigin = ContextOrigin.STATED
    surface_in_force: SurfaceInForce | None = None
    within: tuple[str, ...] = ()
    chain: tuple[Delegator, ...] = ()

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The agents that run now, one inside the other, this context's own last."""
        if not self.agent or self.agent in self.within:
            return self.within
        return (*self.within, self.agent)

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """All by which a policy may decide differently of two contexts before a call is made."""
        return (
            self.actor,
            self.tenant,
            self.roles,
            self.session_key,
            self.agents,
            self.origin,
            self.chain,
            self.mode,
            self.interactive,
            self.roots,
            tuple(sorted(self.labels.items())),
            repr(self.evaluation),
            repr(self.resources),
        )

    @property
    def actor_kind(self) -> str:
        """``agent``, ``user`` or ``service`` by the id's prefix, else ``unknown``."""
        return _kind_of(self.actor)

    @cached_property
    def user(self) -> str:
        """The user for whom calls are made: the actor, or the outermost one that delegated to it;
        empty where none of them is a ``user:``.
        """
        for actor in (self.actor, *(delegator.actor for delegator in self.chain)):
            if _kind_of(actor) == "user":
                return actor
        return ""

    @cached_property
    def agent(self) -> str:
        """The agent's name for ``gen_ai.agent.name``, or an empty string."""
        if self.agent_name:
            return self.agent_name
        kind, colon, name = self.actor.partition(":")
        return name if colon and kind == "agent" else ""

    @cached_property
    def session_key(self) -> tuple[str, str, str]:
        """The identity of the session; calls without a session id share one by tenant and actor."""
        tenant = self.tenant or ""
        if self.session_id:
            return tenant, self.session_id, ""
        return tenant, "", self.actor

    @cached_property
    def policy_actor(self) -> dict[str, Any]:
        """``input.actor`` of a policy query."""
        actor: dict[str, Any] = {
            "id": self.actor,
            "kind": self.actor_kind,
            "roles": list(self.roles),
            "tenant": self.tenant,
        }
        if self.chain:
            actor["chain"] = [delegator.document() for delegator in self.chain]
        return actor

    @property
    def as_delegator(self) -> Delegator:
        """What a child of this context is compared to."""
        return Delegator(self.actor, self.roles, self.tenant, self.mode, self.roots)

    @cached_property
    def policy_evaluation(self) -> dict[str, Any] | None:
        """``input.evaluation`` of a policy query: what an evaluator leaves out is not passing, and
        no next step.
        """
        if self.evaluation is None:
            return None
        return {"status": "error", "trend": "regressing", "next_step": None, **self.evaluation}

    @cached_property
    def span_attributes(self) -> dict[str, str]:
        """The attributes of a span: ids, without what looks like a secret."""
        # the tables are read when there is something to look at
        from agenttool_otel.redaction.ids import shown_id

        pairs = (
            (GenAI.AGENT_NAME, self.agent),
            (GenAI.CONVERSATION_ID, self.session_id),
            (Attr.SESSION_ID, self.session_id),
            (Attr.ACTOR_ID, self.actor),
            (Attr.TENANT_ID, self.tenant),
            (Attr.SURFACE_ID, self.surface),
        )
        return {name: shown_id(value) for name, value in pairs if value}


def _kind_of(actor: str) -> str:
    kind, colon, _ = actor.partition(":")
    return kind if colon and kind in _ACTOR_KINDS else "unknown"


_FIELDS = tuple(AgentContext.__dataclass_fields__)
_EMPTY = AgentContext(origin=ContextOrigin.NONE)
_LOST = AgentContext(origin=ContextOrigin.LOST)
_stated = False  # whether this program states contexts at all
_WHOSE = ("tenant", "session_id", "actor", "agent_name")
_NEVER_KEPT = ("user_text", "resources", "host", "surface_in_force")
_MAX_KEPT = 256
# the last contexts that were stated, with their values, by whose they are; each is replaced as one, so
# threads need no lock
_kept: dict[tuple[Any, ...], tuple[dict[str, Any], AgentContext]] = {}
_current: contextvars.ContextVar[AgentContext] = contextvars.ContextVar(
    "agenttool_context", default=_EMPTY
)
_native_call: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "agenttool_native_call", default=None
)
_mappings: contextvars.ContextVar[tuple[ExternalMapping, ...]] = contextvars.ContextVar(
    "agenttool_maps", default=()
)


def current_context() -> AgentContext:
    """Return the context in force; an empty one where none was set.

    In a thread other than the main one, of a program that states contexts, an empty one is *lost*
    (``origin``): most likely it was not carried there (``carry_context``).
    """
    context = _current.get()
    if context is not _EMPTY or not _stated:
        return context
    in_main_thread = threading.current_thread() is threading.main_thread()
    return context if in_main_thread else _LOST


@contextmanager
def agent_context(
    *,
    actor: str | None = None,
    tenant: str | None = None,
    roles: Sequence[str] | None = None,
    session_id: str | None = None,
    agent_name: str | None = None,
    mode: str | None = None,
    interactive: bool | None = None,
    roots: Sequence[str | os.PathLike[str]] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    user_text: str | Sequence[str] | None = None,
    surface: str | SurfaceInForce | None = None,
    labels: Mapping[str, str] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    host: Mapping[str, Any] | None = None,
    parent: AgentContext | None = None,
) -> Iterator[AgentContext]:
    """Set the facts of the calls made inside the ``with`` block; what is not given is inherited
    from outside.

    Args:
        actor, tenant, session_id, agent_name, mode, roles, interactive, cwd, evaluation, host: see
        AgentContext.
        roots: list of directories; relative ones are taken from the process's own directory as it
          is now.
        user_text: the user's words; added to those of the outer context.
        surface: from ``Governor.surface``: other tools are refused. A text is a label alone; an
          empty one lifts it.
        labels: merged over the outer ones.
        resources: merged over the outer ones, name by name; copied as JSON data now.
        parent: the context of the agent that starts this one. What is not given is inherited from it,
          and the stock policy denies each call of a child that is wider than it.

    Yields:
        The context in force.

    Raises:
        ConfigurationError: an argument is of another type, for example a text for ``roots`` or
          ``roles``.
    """
    global _stated
    around = _current.get()
    outer = around if parent is None else _parent(parent)
    stated = (
        ("actor", actor, maybe_text),
        ("tenant", tenant, maybe_text),
        ("session_id", session_id, maybe_text),
        ("surface", getattr(surface, "surface_id", surface), maybe_text),
        ("agent_name", agent_name, maybe_text),
        ("mode", mode, maybe_text),
        ("interactive", interactive, truth),
        ("roles", roles, texts),
        ("roots", roots, _roots),
        ("cwd", cwd, _place),
        ("labels", labels, _mapping),
        ("host", host, _mapping),
        ("evaluation", evaluation, _mapping),
        ("resources", resources, _mapping),
    )
    outer_values = vars(outer)  # with what cached properties keep beside the fields
    values = {name: outer_values[name] for name in _FIELDS}
    for name, value, read in stated:
        if value is not None:
            values[name] = read(name, value)
    values["user_text"] = outer.user_text + _user_texts(user_text)
    values["labels"] = {**outer.labels, **labels} if labels else outer.labels
    values["resources"] = _merged_resources(outer, resources)
    values["surface_in_force"] = _in_force(outer, surface)
    values["within"] = outer.agents
    if parent is not None:
        chain = (*parent.chain, parent.as_delegator)
        values["chain"] = joined_chain(around.chain, chain)
    values["origin"] = ContextOrigin.STATED
    inner = _context_of(values)
    _stated = True
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)


@contextmanager
def delegated_by(chain: Iterable[Mapping[str, Any]]) -> Iterator[AgentContext]:
    """State who has delegated the calls of the ``with`` block, beside those who did so already.

    Args:
        chain: who, as ``Delegator.document`` has it, the outermost first.

    Yields:
        The context in force.
    """
    around = current_context()
    stated = tuple(map(Delegator.of, chain))
    inner = replace(around, chain=joined_chain(around.chain, stated))
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)


def _context_of(values: dict[str, Any]) -> AgentContext:
    """Return the context of these values: its session's last one, where it was stated with equal ones.

    What was worked out of a context is kept on it, so an agent that states the same for each call
    pays for it once, beside the agents of other sessions too. A context is not kept where its caller
    may change what it holds (``evaluation``, ``host``), or where it holds much (``resources``, the
    user's words).
    """
    whose = tuple(values[name] for name in _WHOSE)
    kept = _kept.get(whose)
    # it may hold a dict of its caller's, whose labels were changed since it was stated
    if kept is not None and kept[0] == values and kept[1].labels == values["labels"]:
        return kept[1]
    # the constructor of a frozen dataclass sets each field by a call: half of this block's time
    made = object.__new__(AgentContext)
    vars(made).update(values)
    if _may_be_kept(values):
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        # of labels a copy: a context of one's own may hold a dict that is changed later
        _kept[whose] = ({**values, "labels": dict(values["labels"])}, made)
    return made


def _may_be_kept(values: dict[str, Any]) -> bool:
    if any(values[name] for name in _NEVER_KEPT) or values["evaluation"] is not None:
        return False
    # labels={"paid": 1} equals labels={"paid": True}, and a policy decides them differently
    return all(type(label) is str for label in values["labels"].values())


def _parent(parent: Any) -> AgentContext:
    if not isinstance(parent, AgentContext):
        kind = type(parent).__name__
        raise ConfigurationError(f"parent has to be the context of an agent, not {kind}")
    return parent


def joined_chain(
    around: tuple[Delegator, ...], chain: tuple[Delegator, ...]
) -> tuple[Delegator, ...]:
    """Return a chain in which nobody is left out.

    Args:
        around: who has delegated what happens around.
        chain: who has delegated what happens inside, which may begin with the same.
    """
    if chain[: len(around)] == around:
        return chain
    return (*around, *chain)


def _user_texts(user_text: Any) -> tuple[str, ...]:
    if user_text is None:
        return ()
    if isinstance(user_text, str):
        return (user_text,)
    return texts("user_text", user_text)


def _merged_resources(
    outer: AgentContext, resources: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    if not resources:
        return outer.resources
    return {**outer.resources, **whole_object("resources", resources)}


def _in_force(outer: AgentContext, surface: str | SurfaceInForce | None) -> SurfaceInForce | None:
    if surface is None or isinstance(surface, str):
        return None if surface == "" else outer.surface_in_force
    return surface


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} has to be a dict, not {type(value).__name__}")
    return value


def _roots(name: str, roots: Any) -> tuple[str, ...]:
    if isinstance(roots, os.PathLike):
        raise ConfigurationError(
            f'roots has to be a list of directories: write roots=["{os.fspath(roots)}"]'
        )
    if isinstance(roots, (str, bytes, Mapping)) or not isinstance(roots, Iterable):
        texts(name, roots)  # raises, with what to write
    return tuple(os.path.abspath(_place(name, root)) for root in roots)


def _place(name: str, value: Any) -> str:
    """Return the path of a directory; an empty text would be the process's own, by mistake."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if path == "":
        raise ConfigurationError(f"{name} has to name a directory, not an empty text")
    if not isinstance(path, str):
        kind = type(value).__name__
        raise ConfigurationError(f"{name} has to name a directory, not {kind}")
    return path


@contextmanager
def native_call(call_id: str | None, *mappings: ExternalMapping) -> Iterator[None]:
    """State which native call (``tool_call_id``) the governed calls of this block answer.

    Args:
        call_id: the model's or framework's id; becomes ``gen_ai.tool.call.id``.
        mappings: further native ids of the call, for example an ``McpMapping``.
    """
    call_token = _native_call.set(call_id)
    mappings_token = _mappings.set(mappings)
    try:
        yield
    finally:
        _mappings.reset(mappings_token)
        _native_call.reset(call_token)


def current_mappings() -> list[ExternalMapping]:
    """Return the native ids in force, beside the call's own."""
    return list(_mappings.get())


def current_native_call() -> str | None:
    """Return the native call id in force."""
    return _native_call.get()


def carry_context(function: Callable[P, R]) -> Callable[P, R]:
    """Bind a function to the present context, for ``executor.submit`` and other threads.

    Executors don't copy context variables, so a governed call in a worker thread would lose its
    actor, session and parent span. The returned function may be called many times and from many
    threads at once.

    Args:
        function: what the worker will call.
    """
    context = contextvars.copy_context()

    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return carried


def run_in_context(
    context: AgentContext, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Call a function under a context that came from elsewhere.

    Args:
        context: the facts in force meanwhile.
        function: what is called.
        args: its arguments.
        kwargs: the named ones.
    """
    inside = contextvars.copy_context()
    inside.run(_current.set, context)
    return inside.run(function, *args, **kwargs)


class ContextDefaults:
    """Fills contexts; the same context gives the same filled one, while it is in use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # by identity: a context may hold dicts, which have no hash
        self._filled: LRUCache[int, tuple[AgentContext, AgentContext]] = LRUCache(_MAX_FILLED)
        self._lock = new_lock()

    def fill(self, context: AgentContext) -> AgentContext:
        """Return the context with nothing left open that a setting states."""
        settings = self._settings
        is_stated = context.roots or not settings.roots
        has_actor = context.actor or not (settings.actor or settings.roles)
        if is_stated and has_actor and not context.chain:
            return context
        with self._lock:
            known = self._filled.get(id(context))
        if known is not None and known[0] is context:
            return known[1]
        filled = replace(
            context,
            roots=context.roots or settings.roots,
            actor=context.actor or settings.actor,
            roles=context.roles or (() if context.actor else settings.roles),
            chain=tuple(map(self._filled_delegator, context.chain)),
        )
        with self._lock:
            self._filled[id(context)] = (context, filled)
        return filled

    def _filled_delegator(self, delegator: Delegator) -> Delegator:
        settings = self._settings
        return replace(
            delegator,
            roots=delegator.roots or settings.roots,
            actor=delegator.actor or settings.actor,
            roles=delegator.roles or (() if delegator.actor else settings.roles),
        )
