"""The words of a line that could not be read, as a shell would make them: only ever used to warn."""

from __future__ import annotations

import re

__all__ = ["surface_words"]

_MAX_WORDS = 400
_MAX_BRACES = 64
_WORD = re.compile(r"[^\s;|&<>()`]{2,200}")
_CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3}))")
_HOME = re.compile(r"\$HOME\b|\$\{HOME\}|\$env:USERPROFILE|\$\{HOME[:%#/-][^}]{0,40}\}")
_BRACE = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MARKS = str.maketrans("", "", "'\"\\")


def surface_words(text: str) -> list[str]:
    """The words of a text without quotes and backslashes, with braces and escapes expanded.

    Args:
        text: any text; the caller bounds its length.

    Returns:
        Words that a shell may make of it. More than a few hundred are not made.
    """
    text = _CODE.sub(_decoded, text) + " " + text
    text = _HOME.sub("~", text.translate(_MARKS)).replace("$~", "~")
    words: list[str] = []
    for match in _WORD.finditer(text):
        words.extend(_expanded(match[0]))
        if len(words) >= _MAX_WORDS:
            break
    return [part for word in words for part in (word, word.partition("=")[2]) if len(part) > 1]


def _decoded(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    code = int(digits, 16) if digits else int(match[4], 8)
    return chr(code) if 0x20 < code < 0xD800 else " "


def _expanded(word: str) -> list[str]:
    """The words that braces stand for; those within braces first."""
    done: list[str] = []
    waiting = [word.lstrip("$")]
    while waiting and len(done) + len(waiting) < _MAX_BRACES:
        current = waiting.pop()
        match = _BRACE.search(current)
        if match is None:
            done.append(current)
            continue
        waiting.extend(current[: match.start()] + choice + current[match.end() :] for choice in match[1].split(","))
    return [*done, *waiting]
