"""The option words of a command, read as its table says; what the table does not know ends the proof."""

from __future__ import annotations

import re

from agenttool_otel.facts.shell.guard import Word
from agenttool_otel.facts.shell.refused import Refused
from agenttool_otel.facts.shell.tables import Spec

__all__ = ["globs_value", "long_option", "short_option"]

_DIGITS = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?[0-9]+[A-Za-z]{0,3}\Z")


def globs_value(spec: Spec, text: str) -> bool:
    """Whether a glob stands only in a long option's value, as in ``--include=*.py``: each match is that option too."""
    option, equals, _value = text.partition("=")
    return bool(equals) and option.startswith("--") and option[2:] in spec.long_value.keys() - spec.pattern_options


def long_option(spec: Spec, text: str, following: Word | None) -> tuple[str, Word | None, int]:
    """Reads a word that begins with ``--``: the option, its value, and how many further words it took."""
    option, equals, value = text[2:].partition("=")
    if option in spec.long and not equals:
        return option, None, 0
    if option in spec.long_pair and not equals:
        return option, None, 2
    attached_only = spec.long_value.get(option)
    if attached_only is None:
        unsafe = next((name for name in spec.unsafe_long if option and name.startswith(option)), None)
        raise Refused(f"option --{unsafe}" if unsafe else f"unknown option --{option[:40]}")
    if equals:
        return option, Word(value, 0, 0, quoted=True), 0
    if attached_only:
        return option, None, 0
    return option, _separate_value(following, f"--{option}"), 1


def _separate_value(following: Word | None, option: str) -> Word:
    if following is None:
        raise Refused(f"option {option} without its value")
    if following.glob:
        raise Refused("glob as an option's value")
    if following.text.startswith("-") and following.text != "-" and not _NUMBER.match(following.text):
        raise Refused("option's value that looks like an option")
    return following


def short_option(spec: Spec, text: str, following: Word | None, options: set[str]) -> tuple[str, Word | None, int]:
    """Reads a word that begins with one dash: the last letter, its value, and how many further words it took."""
    if not spec.cluster and len(text) > 2 and text[1] not in spec.value:
        raise Refused("several letters in one option")
    for position, letter in enumerate(text[1:], start=1):
        if letter in spec.short:
            options.add(letter)
            continue
        if letter in spec.value:
            rest = text[position + 1 :]
            if rest and spec.value_apart and not _DIGITS.fullmatch(rest):
                raise Refused(f"letters behind -{letter}, which takes the next word")
            if rest:
                return letter, Word(rest, 0, 0, quoted=True), 0
            return letter, _separate_value(following, f"-{letter}"), 1
        if letter in spec.optional:
            return letter, None, 0
        raise Refused(f"unknown option -{letter}")
    return text[-1], None, 0
