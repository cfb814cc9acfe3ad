"""Text from elsewhere made safe for a terminal, and durations and sizes as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Final

_HIDDEN_CATEGORIES: Final = {
    "Cc",  # controls: ESC ] 0 ; title BEL renames the terminal's window
    "Cf",  # formats: U+202E turns the rest of the line around
    "Cs",  # halves of surrogate pairs, which stdout can't encode
    "Co",  # private use: drawn differently by each font
    "Cn",  # not assigned
    "Zl",  # line separator
    "Zp",  # paragraph separator
}


def clean(value: Any, *, limit: int = 400) -> str:
    """Return text from elsewhere with each control and format character as a visible escape.

    Args:
        value: What to show; the items of a list are joined by commas.
        limit: Most characters; a longer text ends with an ellipsis.
    """
    text = str(value)
    if isinstance(value, (list, tuple)):
        text = ", ".join(str(item) for item in value)
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN_CATEGORIES:
        return char
    return char.encode("unicode_escape").decode("ascii")


def duration_text(seconds: float) -> str:
    """Return a duration as ``850 µs``, ``12.3 ms``, ``4.2 s``, ``3 min 20 s`` or ``2 h 5 min``."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def size_text(size: int) -> str:
    """Return a number of bytes as ``200 B``, ``1.2 kB``, ``5.0 MB`` or ``3.1 GB``."""
    if size < 1000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{size / 1e3:.1f} kB"
    if size < 1_000_000_000:
        return f"{size / 1e6:.1f} MB"
    return f"{size / 1e9:.1f} GB"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 span``, ``2 spans``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def full_stop(text: str) -> str:
    """Return a sentence with its full stop, and as it is if it ends with a stop of its own."""
    # the message of a rule is written by its author: "is it safe?" gets no "?."
    if text.endswith((".", "!", "?")):
        return text
    return f"{text}."


def joined(parts: Sequence[str]) -> str:
    """Return the parts that are not empty, with commas between."""
    return ", ".join(part for part in parts if part)
