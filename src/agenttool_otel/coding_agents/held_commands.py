"""Commands that an agent runs under a profile: the hook puts ``agenttool run`` before them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agenttool_otel.coding_agents.answers import can_change
from agenttool_otel.coding_agents.dialects import Dialect
from agenttool_otel.coding_agents.payloads import HookCall
from agenttool_otel.names import SandboxProfile

_BY_RUNNER: Final = frozenset({SandboxProfile.READ, SandboxProfile.REHEARSE})
"""Profiles that ``agenttool run`` holds a command by."""
_SHELL: Final = ("bash", "-c")
_NONE: Final[frozenset[SandboxProfile]] = frozenset()
_AGENTTOOL: Final = (sys.executable, "-I", "-m", "agenttool_otel.cli")
_MOST_BYTES: Final = 65_536  # Linux starts no program with a word of more than 128 KiB


def profiles_of(dialect: Dialect, call: HookCall) -> frozenset[SandboxProfile]:
    """Return the profiles by which the agent can be made to hold a call.

    Args:
        dialect: the agent's dialect.
        call: the call, which has not run.
    """
    if not can_change(dialect, call):
        return _NONE
    arguments = call.decided or {}
    command = arguments.get(_argument(dialect, call))
    if not isinstance(command, str) or "\0" in command:
        return _NONE
    size = len(command.encode("utf-8", "replace"))
    return _BY_RUNNER if size <= _MOST_BYTES else _NONE


def words_of(dialect: Dialect, call: HookCall, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the program that runs a command, and its arguments.

    Args:
        dialect: the agent's dialect.
        call: the call.
        arguments: those that were permitted.
    """
    return (*_SHELL, str(arguments[_argument(dialect, call)]))


def held(
    dialect: Dialect,
    call: HookCall,
    arguments: Mapping[str, Any],
    profile: str,
    root: str,
    reference: Sequence[str] = (),
) -> dict[str, Any]:
    """Return arguments by which a command runs under a profile.

    Args:
        dialect: the agent's dialect.
        call: the call.
        arguments: those that were permitted.
        profile: one of ``profiles_of``.
        root: the directory whose keys and credentials are masked, and that a layer is over.
        reference: options by which the runner asks about this very call.
    """
    words = [*_AGENTTOOL, "run", "--profile", profile, "--root", root, *reference, "--"]
    command = shlex.join([*words, *words_of(dialect, call, arguments)])
    return {**arguments, _argument(dialect, call): command}


def _argument(dialect: Dialect, call: HookCall) -> str:
    """Return the argument that is a command; empty where the tool has none, or several."""
    known = dialect.tools.get(call.tool)
    if known is None:
        return ""
    named = known.facts.get("command_args", [])
    return str(named[0]) if len(named) == 1 else ""
