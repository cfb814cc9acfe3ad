"""What the room takes and gives: profiles, proofs, violations and results."""

from __future__ import annotations

import errno as codes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from agenttool_otel.names import SandboxProfile


class ViolationKind(StrEnum):
    """What was refused."""

    WRITE = "write"
    """A write outside of the private temporary directory."""
    READ = "read"
    """A read of a masked secret."""
    CONNECTION = "connection"
    """A socket."""
    SIGNAL = "signal"
    """A signal to a process outside."""
    CALL = "call"
    """Another system call."""
    LIMIT = "limit"
    """More time, memory or processes than the limits have."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What code may do.

    Attributes:
        name: one of SandboxProfile.
        may_write_temp: whether it has a private temporary directory.
        network: always ``none``.
    """

    name: str
    may_write_temp: bool = True
    network: str = "none"


PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {SandboxProfile.READ: Profile(SandboxProfile.READ)}
)
"""Profiles by name."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a host has shown of a profile.

    Attributes:
        proven: whether each canary was refused with the profile and went through without.
        mechanism: what would hold it, such as ``landlock``.
        reason: why it is not proven; empty when it is.
    """

    proven: bool
    mechanism: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """What code tried under a profile, and was refused.

    Attributes:
        kind: one of ViolationKind.
        target: the path or address, as it was and not redacted; empty where it is not known.
        errno: the error that the code got; 0 where it is not known.
        suspected: whether only words of an output point to it. Such a violation may raise a
          question; it proves nothing.
    """

    kind: str
    target: str = ""
    errno: int = 0
    suspected: bool = False


@dataclass(frozen=True, slots=True)
class HeldResult:
    """How a held function ended.

    Attributes:
        value: what it returned.
        exception: what it raised; ``None`` when it returned.
        violations: what is known to have been refused. A function may catch a refusal and hide it.
    """

    value: Any = None
    exception: BaseException | None = None
    violations: tuple[Violation, ...] = ()


REFUSALS: Final = frozenset({codes.EACCES, codes.EPERM, codes.EROFS})
"""Errors that a profile answers with."""
