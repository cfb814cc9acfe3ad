"""Parts that the patterns of many places share, each with rows in the tests.

Patterns are in the syntax that RE2 and Python have in common.
"""

from __future__ import annotations

from typing import Final

QUOTE: Final = r"""\\{0,3}["']"""
"""A quote; in a string within a string it is escaped: ``\\"``."""
QUOTED_VALUE: Final = QUOTE + r"""([^"'\r\n\\]{1,256})""" + QUOTE
"""A quoted text, as group 1 without its quotes."""
MAYBE_QUOTE: Final = r"\\{0,3}[\"']?"
"""A quote, escaped or not, or nothing."""
OPTIONAL_QUOTE: Final = r"[\"']?"
"""A quote of a command line or a file of settings, or nothing."""
OPTIONAL_QUOTE_OR_TICK: Final = r"[\"'`]?"
"""A quote or, as in Markdown, a backtick; or nothing."""
NAME: Final = r"([A-Za-z_][\w.:\-]+)"
"""The name of a value, as group 1."""
WITHIN_COMMAND: Final = r"[^\r\n|;]*?"
"""Operands and options, but not a further command of the line."""
TO_NEXT_LINE: Final = r"[^\r\n]*\r?\n"
"""The rest of the line, and its break."""
LINE_END: Final = r"[ \t\r]*$"
"""Nothing more on the line; in patterns with the flag ``m``."""
OPENING_MARK: Final = r"«|»|„|“|”|‘|’|‹|「|『|《|【|（|\(|`|" + QUOTE
"""Alternatives that open a value in a sentence."""


def word(least: int, most: int) -> str:
    """A value without white space and quotes, as a group.

    Args:
        least: least number of bytes.
        most: most of them.
    """
    # htpasswd -bc .htpasswd bob hunter2
    return _repeated(r"[^\s\"']", least, most)


def word_in_text(least: int, most: int) -> str:
    """A value in prose or markup, where backticks and angle brackets end it, too, as a group.

    Args:
        least: least number of bytes.
        most: most of them.
    """
    # <td>hunter2</td>, `hunter2`
    return _repeated(r"[^\s\"'`<>]", least, most)


def _repeated(character: str, least: int, most: int) -> str:
    """A class of characters, repeated between two bounds, as a group."""
    bounds = f"{{{least},{most}}}"
    return f"({character}{bounds})"


def any_case(*alternatives: str) -> str:
    """One of several expressions; ASCII letters match in either case."""
    either = "|".join(alternatives)
    return f"(?i:{either})"
