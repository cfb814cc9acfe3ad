"""Enforcement: code that runs under a profile, which the kernel holds.

    >>> from agenttool_otel.enforcement import available, hold
    >>> if available()["read"].proven:
    ...     result = hold("read", open, ("notes.txt", "w"))
    ...     print(result.exception, result.violations)

The room knows of profiles, threads and commands, and nothing of calls and policies. The libraries
are those of the extra ``sandbox``; without them, and on hosts that can't hold a profile, each
profile is unavailable and nothing runs under it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenttool_otel.values.lazy import lazy_attributes

if TYPE_CHECKING:
    from agenttool_otel.enforcement.commands import arun_command, run_command
    from agenttool_otel.enforcement.holding import hold
    from agenttool_otel.enforcement.limits import CommandResult, Limits
    from agenttool_otel.enforcement.own import OwnLimits, OwnProfile, define_profiles
    from agenttool_otel.enforcement.proofs import available
    from agenttool_otel.enforcement.thread import held_profile, oblige_commands
    from agenttool_otel.enforcement.types import (
        PROFILES,
        HeldResult,
        Profile,
        Proof,
        Violation,
        ViolationKind,
    )

_HOMES = {
    name: module
    for module, names in {
        "proofs": "available",
        "commands": "arun_command run_command",
        "holding": "hold",
        "limits": "CommandResult Limits",
        "own": "OwnLimits OwnProfile define_profiles",
        "thread": "held_profile oblige_commands",
        "types": "PROFILES HeldResult Profile Proof Violation ViolationKind",
    }.items()
    for name in names.split()
}

__all__ = [
    "PROFILES",
    "CommandResult",
    "HeldResult",
    "Limits",
    "OwnLimits",
    "OwnProfile",
    "Profile",
    "Proof",
    "Violation",
    "ViolationKind",
    "arun_command",
    "available",
    "define_profiles",
    "held_profile",
    "hold",
    "oblige_commands",
    "run_command",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
