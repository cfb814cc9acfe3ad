"""Profiles of an operator's own: a stock profile, narrowed further.

A profile of one's own can only take away, so it is at least as strict as the one that it narrows.
They are the process's: what this host has proven is the process's, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

from agenttool_otel.enforcement.limits import Limits
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import SandboxNetwork, SandboxProfile
from agenttool_otel.values.forks import new_lock

_STRICTEST_FIRST: Final = tuple(SandboxProfile)
_ONLY_KNOWN: Final = MappingProxyType({"extra": "forbid"})


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """What a command may use at most, whatever its tool states; ``None`` leaves that to the tool.

    Attributes:
        seconds: wall time.
        memory_bytes: address space of each of its processes.
        processes: processes at the same time; not on a layer, where nobody counts them.
        output_bytes: what is kept of each of standard output and standard error.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _ONLY_KNOWN

    seconds: float | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    output_bytes: int | None = None

    def items(self) -> Iterator[tuple[str, float]]:
        """Yield the limits that are stated, by name."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                yield each.name, value


@dataclass(frozen=True, slots=True)
class OwnProfile:
    """What code may do under a profile of one's own.

    Attributes:
        base: the stock profile that it narrows: ``write`` writes below the session's roots.
        masked: absolute places that can't be read, beside the host's keys and credentials.
        limits: what its commands may use.
        network: always ``none``: hosts can't be listed.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _ONLY_KNOWN

    base: SandboxProfile
    masked: tuple[Path, ...] = ()
    limits: OwnLimits = field(default_factory=OwnLimits)
    network: SandboxNetwork = SandboxNetwork.NONE

    @property
    def limits_commands(self) -> bool:
        """Whether it holds what only ``run_command`` can hold."""
        return any(True for _ in self.limits.items())

    def covers(self, other: OwnProfile) -> bool:
        """Return whether it allows nothing that another profile refuses."""
        place = _STRICTEST_FIRST.index
        if place(self.base) > place(other.base):
            return False
        hidden = set(map(_resolved, self.masked))
        for masked in map(_resolved, other.masked):
            around = {masked, *masked.parents}
            if hidden.isdisjoint(around):
                return False
        own = dict(self.limits.items())
        return all(name in own and own[name] <= value for name, value in other.limits.items())


def _resolved(path: Path) -> Path:
    # a place that is not there yet has no real path, and strict=True would raise
    return Path(os.path.realpath(path))


_STOCK: Final = {profile.value: OwnProfile(profile) for profile in SandboxProfile}
_own: Final[dict[str, OwnProfile]] = {}
_lock: Final = new_lock()


def define_profiles(profiles: Mapping[str, OwnProfile]) -> None:
    """Make profiles known to this process; each is proven when something first asks for it.

    Args:
        profiles: by name.

    Raises:
        ConfigurationError: a name is a stock profile's, or is known as another profile; none of
            them is known then.
    """
    with _lock:
        for name, profile in profiles.items():
            if name in _STOCK:
                raise ConfigurationError(f"the profile {name} is a stock one")
            if _own.get(name, profile) != profile:
                # two Governors would mean two things by one word
                raise ConfigurationError(f"the profile {name} is defined already, otherwise")
        _own.update(profiles)


def own_profiles() -> Mapping[str, OwnProfile]:
    """Return the profiles of one's own, by name."""
    return dict(_own)


def profile_named(name: str) -> OwnProfile | None:
    """Return a profile, a stock one as its own base; ``None`` where there is none of that name."""
    return _STOCK.get(name) or _own.get(name)


def masked_by(name: str) -> frozenset[Path]:
    """Return what a profile masks, beside what every profile masks."""
    own = _own.get(name)
    return frozenset(own.masked) if own is not None else frozenset()


def limited(limits: Limits, name: str) -> Limits:
    """Return the smaller of a command's limits and those of a profile.

    Args:
        limits: what the command's tool states.
        name: the profile's name.
    """
    own = _own.get(name)
    if own is None:
        return limits
    smaller: dict[str, Any] = {}
    for limit, most in own.limits.items():
        stated = getattr(limits, limit)
        if stated is None:
            smaller[limit] = most
        else:
            smaller[limit] = min(stated, most)
    return replace(limits, **smaller)


def strictest_of(names: Iterable[str]) -> str | None:
    """Return which profile allows nothing that any of the others refuses; ``None`` if none does.

    ``write`` with a limit of 5 seconds and ``read`` have no order: each refuses what the other
    allows.

    Args:
        names: the profiles' names.
    """
    profiles = {name: profile_named(name) for name in sorted(names)}
    known = [each for each in profiles.values() if each is not None]
    if len(known) < len(profiles):
        return None
    for name, profile in profiles.items():
        if profile is None:
            continue
        if all(map(profile.covers, known)):
            return name
    return None
