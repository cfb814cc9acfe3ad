"""Wrappers that change nothing about the command behind them: ``timeout 5 make`` is ``make``.

A permission looks behind these and behind no others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agenttool_otel.readers.shell.effects import base_name, is_harmless_assignment

_KILL_AFTER: Final = "-k ?[0-9.]+[smhd]?|--kill-after[= ][0-9.]+[smhd]?"
_SIGNAL: Final = "-s ?[A-Z0-9]+|--signal[= ][A-Z0-9]+"
_TIMEOUT_FLAGS: Final = "--foreground|--preserve-status|-v|--verbose"
_TIMEOUT_OPTIONS: Final = f"(?:(?:{_KILL_AFTER}|{_SIGNAL}|{_TIMEOUT_FLAGS}) )*"

# Homebrew installs GNU's timeout under this name
_GTIMEOUT_FLAGS: Final = "--foreground|--preserve-status"
_GTIMEOUT_OPTIONS: Final = f"(?:(?:-k ?[0-9.]+[smhd]?|-s ?[A-Z0-9]+|{_GTIMEOUT_FLAGS}) )*"

_DURATION: Final = r"[0-9]+(?:\.[0-9]+)?[smhd]? "

_WRAPPERS: Final = {
    "time": re.compile("(?:-p )?"),
    "timeout": re.compile(_TIMEOUT_OPTIONS + _DURATION),
    "gtimeout": re.compile(_GTIMEOUT_OPTIONS + _DURATION),
    "nice": re.compile("(?:(?:-n ?-?[0-9]+|-[0-9]+|--adjustment[= ]-?[0-9]+) )?"),
    "ionice": re.compile("(?:(?:-c ?[0-3]|-n ?[0-7]|-t) )*"),
    "stdbuf": re.compile("(?:-[ioe](?:L|[0-9]+) )+"),
    "command": re.compile("(?:-- )?"),
    "env": re.compile("(?:-- )?"),
}
"""The words that may stand between a wrapper and its command, each with a blank behind it."""


def behind_harmless(words: list[str]) -> list[str] | None:
    """Return what stands behind one wrapper that changes nothing, or ``None``.

    Args:
        words: the command, its name first.
    """
    if not words:
        return None
    name = base_name(words[0])
    pattern = _WRAPPERS.get(name)
    if pattern is None:
        return None
    between = pattern.match(_with_blanks(words[1:]))
    if between is None:
        return None
    options = between[0]
    end = 1 + options.count(" ")
    # a blank within a word is none between two
    if _with_blanks(words[1:end]) != options:
        return None
    rest = words[end:]
    while name == "env" and rest and is_harmless_assignment(rest[0]):
        rest = rest[1:]
    # env -i make, env CC=x make
    if not rest or rest[0].startswith("-") or "=" in rest[0]:
        return None
    return rest


def _with_blanks(words: Sequence[str]) -> str:
    """Return words with a blank behind each."""
    return "".join(f"{word} " for word in words)
