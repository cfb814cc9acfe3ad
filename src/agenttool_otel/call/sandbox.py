"""How the body of a call is held, once its decision obliges that, and what was refused inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agenttool_otel.context.context import AgentContext
from agenttool_otel.names import SandboxProfile, SandboxScope
from agenttool_otel.policy.types import SandboxDuty

if TYPE_CHECKING:  # most calls oblige nothing, and pay nothing for what holds
    from agenttool_otel.call.rehearsal import RehearsedBody
    from agenttool_otel.enforcement import Violation
    from agenttool_otel.enforcement.rehearsing import Rehearsal
    from agenttool_otel.errors import SandboxUnavailable


ON_LAYERS: Final = frozenset({SandboxProfile.REHEARSE, SandboxProfile.WRITE})
"""Profiles whose commands write on a layer; the thread of the body is held by ``read``."""


_held_by_host: Final[ContextVar[frozenset[SandboxProfile]]] = ContextVar(
    "agenttool_held_by_host", default=frozenset()
)


@contextmanager
def host_holds(profiles: Iterable[SandboxProfile]) -> Iterator[None]:
    """Let calls of custom tools be permitted that their host has to hold by a profile.

    Args:
        profiles: those by which the host, which runs the body, can hold it.
    """
    token = _held_by_host.set(frozenset(profiles))
    try:
        yield
    finally:
        _held_by_host.reset(token)


def held_by_host() -> frozenset[SandboxProfile]:
    """Return the profiles by which the host of the current code holds bodies of custom tools."""
    return _held_by_host.get()


def roots_of(context: AgentContext) -> tuple[Path, ...]:
    """Return the session's roots: what a layer is over, and where keys and credentials are masked.

    Args:
        context: who calls.
    """
    return tuple(Path(context.cwd or os.getcwd(), root) for root in context.roots)


@dataclass(frozen=True, slots=True, eq=False)
class ProcessSandbox:
    """What holds the process in which a tool's bodies run, and each that takes its place.

    Whoever starts the process makes it: what a tool or a server states of itself makes none.
    """

    profile: str
    mechanism: str
    roots: tuple[Path, ...]  # below which keys and credentials were looked for as it started
    masked: Callable[[], frozenset[Path] | None]  # what it can't read; ``None`` before it starts

    def failure(self, duty: SandboxDuty, roots: tuple[Path, ...]) -> str:
        """Return why it does not hold a body as a decision obliges; empty where it does.

        Args:
            duty: what is obliged.
            roots: those of the call's session.
        """
        return self.weaker(duty) or self.exposed(roots)

    def weaker(self, duty: SandboxDuty) -> str:
        """Return why its profile is not as strict as what is obliged; empty where it is.

        Args:
            duty: what is obliged.
        """
        from agenttool_otel.enforcement.own import profile_named

        own, obliged = profile_named(self.profile), profile_named(duty.name)
        if own is None or obliged is None:
            return "it is not known here"
        if obliged.base is SandboxProfile.REHEARSE:
            return "what a process that runs on would change is not seen call by call"
        if own.covers(obliged) and duty.network in (None, own.network):
            return ""
        return f"its process is held by {self.profile}, which allows more"

    def exposed(self, roots: tuple[Path, ...]) -> str:
        """Return why it could read a key or credential that a body held for one call could not; empty
        where it can't.

        Args:
            roots: those of the call's session.
        """
        from agenttool_otel.enforcement.secrets import secrets_below
        from agenttool_otel.errors import SandboxUnavailable

        looked_at = [Path(os.path.realpath(root)) for root in self.roots]
        for root in map(os.path.realpath, roots):
            if not any(map(Path(root).is_relative_to, looked_at)):
                return f"its process was started with other roots than {root}"
        masked = self.masked()
        if masked is None:
            return ""  # it looks for them as it starts
        try:
            found = secrets_below(self.roots, self.profile)
        except SandboxUnavailable as error:
            return str(error)
        # a .env that was made since lies in a directory that it may read
        return "" if masked.issuperset(found) else "its process is older than a key or credential"


@dataclass(slots=True, eq=False)
class Sandbox:
    """What holds the body of one call."""

    duty: SandboxDuty  # what its decisions oblige
    scope: SandboxScope  # how much of the body is held
    mechanism: str  # what holds it, in the words of whoever does
    roots: tuple[Path, ...]  # of the session: keys and credentials below them can't be read
    entered: bool = False  # whether the body ran inside
    violations: list[Violation] = field(default_factory=list)  # what was refused, unredacted
    # kinds of what commands were refused, or of what the words of their output point to
    suspected: set[str] = field(default_factory=set)
    # what it returned can't be given: part of it would run outside
    unfinished: bool = False
    # why the body could not be held after all, so that it did not run
    unavailable: SandboxUnavailable | None = None

    # where its commands run, if the profile is one of ON_LAYERS
    rehearsal: RehearsedBody | None = None

    @property
    def held_by(self) -> str:
        """The profile that holds the thread of the body; only commands have a layer."""
        if self.duty.profile in ON_LAYERS:
            return SandboxProfile.READ.value
        return self.duty.name

    @property
    def commands(self) -> Rehearsal | None:
        """The layer of this attempt; ``None`` where commands are held as the body is."""
        return self.rehearsal.current if self.rehearsal is not None else None

    @property
    def refuses(self) -> bool:
        """Whether something was refused, so that the body can't end otherwise if it runs again."""
        return bool(self.violations) or self.unfinished or self.unavailable is not None

    def masked(self) -> tuple[Path, ...]:
        """Return the keys and credentials below the roots, and what the profile itself masks.

        Raises:
            SandboxUnavailable: they can't all be found.
        """
        from agenttool_otel.enforcement.own import masked_by
        from agenttool_otel.enforcement.secrets import secrets_below

        own = masked_by(self.duty.name)
        return (*secrets_below(self.roots, self.held_by), *sorted(own))
