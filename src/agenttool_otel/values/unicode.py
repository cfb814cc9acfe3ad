"""Characters that mislead: invisible ones, and those that look like ASCII letters.

The table of look-alikes is Unicode's own (UTS #39), in ``data/confusables.json``; it is read when
the first text outside ASCII comes by.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

from agenttool_otel.values.tables import load_table

_IGNORABLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u180b\u180c\u180d\u180f")
"""Letters and marks that show nothing, although their category does not show that."""


@cache
def look_alike_table() -> dict[int, str]:
    """Return a table for ``str.translate`` from characters outside ASCII to the ASCII text that
    they look like.
    """
    table = load_table(__package__, "data/confusables.json")["confusables"]
    return {
        ord(character): target for target, characters in table.items() for character in characters
    }


def _is_invisible(character: str) -> bool:
    if (
        character in _IGNORABLE
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    ):
        return True
    return unicodedata.category(character) in {"Cf", "Zl", "Zp"}


def has_invisible(text: str) -> bool:
    """Return whether a text has format controls, bidirectional overrides, fillers or variation
    selectors.
    """
    return not text.isascii() and any(
        _is_invisible(character) for character in set(text) if character > "\x7f"
    )


def has_misleading_invisible(text: str) -> bool:
    """Return whether a text has invisible characters where honest writing has none.

    Emoji are put together with joiners and variation selectors, and the scripts that join letters
    need joiners and non-joiners between them.
    """
    if not has_invisible(text):
        return False
    return any(
        _is_invisible(c) and not _is_at_home(text, index)
        for index, c in enumerate(text)
        if c > "\x7f"
    )


def _is_at_home(text: str, index: int) -> bool:
    character = text[index]
    before, after = text[max(0, index - 1) : index], text[index + 1 : index + 2]
    if character in "\ufe0e\ufe0f":
        return _is_symbol(before) or after == "\u20e3"
    if character in "\u200c\u200d":
        if _joins(before) and _joins(after):
            return True
        return (
            character == "\u200d"
            and _is_symbol(after)
            and (_is_symbol(before) or before == "\ufe0f")
        )
    return False


def _is_symbol(character: str) -> bool:
    """Return whether something may be a part of an emoji, skin tones included."""
    return character > "\u2000" and (
        unicodedata.category(character) in ("So", "Sm") or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _joins(character: str) -> bool:
    """Return whether a letter belongs to a script that joins letters: Arabic and its kin, those of
    India, Khmer.
    """
    return (
        any(first <= character <= last for first, last in _JOINING)
        and unicodedata.category(character)[0] in "LM"
    )


_JOINING: Final = (
    ("\u0600", "\u08ff"),
    ("\u0900", "\u0dff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
)


def is_national(character: str) -> bool:
    """Return whether a letter belongs to a Latin alphabet in use, such as the Polish or
    Danish one.
    """
    return "\u00c0" <= character <= "\u017f" and character not in "\u00d7\u00f7\u0138\u0149\u017f"


def strip_invisible(text: str) -> str:
    """Return the text without the characters that ``has_invisible`` finds."""
    if text.isascii():
        return text
    # One question for each different character, so that a long text costs little more than its
    # scan.
    hidden = [
        ord(character) for character in set(text) if character > "\x7f" and _is_invisible(character)
    ]
    return text.translate(dict.fromkeys(hidden)) if hidden else text


def skeleton(text: str) -> str:
    """Return what a text looks like in lower-case ASCII, as far as its characters have such a look.

    Two texts with one skeleton can be taken for each other. Accents and strokes are dropped, as a
    hasty reader does; then the look-alikes within ASCII are folded (``0`` and ``o``, ``1``, ``i``
    and ``l``, ``rn`` and ``m``, ``vv`` and ``w``). A skeleton is for comparison only.
    """
    if not text.isascii():
        text = strip_invisible(unicodedata.normalize("NFKC", text)).translate(look_alike_table())
        text = "".join(
            c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c)
        )
        text = unicodedata.normalize("NFKC", text).translate(look_alike_table()).translate(_STROKES)
    text = text.lower().replace("rn", "m").replace("vv", "w").replace("cl", "d")
    return text.translate(_ASCII_FOLD)


_ASCII_FOLD: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "|": "l"})
_STROKES: Final = str.maketrans(
    {"ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ß": "b"}
)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\ud[89a-f][0-9a-f]{2}")


def has_escaped_surrogate(text: str) -> bool:
    """Return whether a text has, or may have had, a lone surrogate.

    A call's arguments are made JSON before they are decided on, and JSON has no lone surrogates:
    there they are written as six letters. What the tool gets is not that text, so nothing that is
    found in it holds for the call.
    """
    return "\\" in text and _ESCAPED.search(text) is not None


def has_surrogate(text: str) -> bool:
    """Return whether a text has a lone surrogate, which no encoding has."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def escape_surrogates(text: str) -> str:
    r"""Return the text with each lone surrogate written as ``\udXXX``, so that it can be
    encoded.
    """
    if not has_surrogate(text):
        return text
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
