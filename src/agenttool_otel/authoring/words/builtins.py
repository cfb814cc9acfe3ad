"""What builtins take and give."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agenttool_otel.authoring.words.comparing import LOWERED, Wrong, called, described, kinds_named
from agenttool_otel.authoring.words.shapes import (
    A_LIST,
    A_NUMBER,
    A_SET,
    ANY,
    NAMES,
    OF_KINDS,
    TEXT,
    Shape,
    Words,
    elements,
    keys,
    merged,
)
from agenttool_otel.values.tables import load_table

_TABLE: Final[Mapping[str, Any]] = load_table("agenttool_otel.policy.engines", "builtin_types.toml")
_RETURNS: Final[Mapping[str, str]] = _TABLE["returns"]
_ARGUMENTS: Final[Mapping[str, Sequence[Sequence[str]]]] = _TABLE["arguments"]
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_VERB: Final = re.compile(r"%[-+# 0]*(?:\d+)?(?:\.\d+)?([a-zA-Z%])")


def wrong_arguments(name: str, arguments: Sequence[Shape]) -> Wrong | None:
    """Return what is wrong with the arguments of a builtin.

    Args:
        name: the builtin.
        arguments: what it is given.
    """
    for argument, kinds in zip(arguments, _ARGUMENTS.get(name, ()), strict=False):
        if kinds and argument.kinds and not argument.could_be(kinds):
            wanted = kinds_named(Shape(frozenset(kinds)))
            return Wrong(
                f"{name} takes {wanted}, and {described(argument)} is none: it has no value"
            )
    check = _CHECKS.get(name)
    return None if check is None else check(arguments)


def _wrong_format(arguments: Sequence[Shape]) -> Wrong | None:
    if len(arguments) != 2:
        return None
    text = _constant(arguments[0])
    values = arguments[1]
    if text is None or values.size is None:
        return None
    verbs = [verb for verb in _VERB.findall(text) if verb != "%"]
    if len(verbs) == values.size:
        return None
    return Wrong(f"sprintf has {len(verbs)} verbs in its text and {values.size} values")


def _wrong_pattern(arguments: Sequence[Shape]) -> Wrong | None:
    text = _constant(arguments[0]) if arguments else None
    if text is None:
        return None
    try:
        re.compile(text)
    except re.error as error:
        # RE2 has some forms that Python lacks: \pL, (?i:x) in the middle, \z
        if "\\" in text or "(?" in text:
            return None
        return Wrong(f"{text!r} is no regular expression: {error}")
    return None


def _constant(shape: Shape) -> str | None:
    """Return the one text that a value is."""
    if shape.words is None or not shape.words.stated or len(shape.words.known) != 1:
        return None
    return next(iter(shape.words.known))


def _never_in_part(arguments: Sequence[Shape]) -> Wrong | None:
    """Return that no word of a vocabulary begins so: ``startswith(input.tool.kind, "sh_")``."""
    if len(arguments) != 2:
        return None
    part = _constant(arguments[1])
    words = arguments[0].words
    if part is None or words is None or words.stated or words.open:
        return None
    if any(part in word for word in words.known):
        return None
    return Wrong(f"no word that {called(arguments[0])} can be has {part!r} in it")


_CHECKS: Final[Mapping[str, Callable[[Sequence[Shape]], Wrong | None]]] = {
    "sprintf": _wrong_format,
    "regex.match": _wrong_pattern,
    "startswith": _never_in_part,
    "endswith": _never_in_part,
    "contains": _never_in_part,
}


def builtin_result(name: str, arguments: Sequence[Shape]) -> Shape:
    """Return what a builtin gives.

    Args:
        name: the builtin.
        arguments: what it is given.
    """
    work_out = _RESULTS.get(name)
    if work_out is not None and arguments:
        return work_out(arguments)
    kind = _RETURNS.get(name)
    return ANY if kind is None else OF_KINDS[kind]


def _first_elements(arguments: Sequence[Shape]) -> Shape:
    return elements(arguments[0]).called("")


def _sorted(arguments: Sequence[Shape]) -> Shape:
    return Shape(A_LIST.kinds, items=elements(arguments[0]))


def _joined(arguments: Sequence[Shape]) -> Shape:
    if len(arguments) != 2:
        return OF_KINDS["object"]
    return merged(arguments[0], arguments[1])


def _object_keys(arguments: Sequence[Shape]) -> Shape:
    return Shape(A_SET.kinds, items=keys(arguments[0]))


def _lowered(arguments: Sequence[Shape]) -> Shape:
    words = arguments[0].words
    if words is None or not arguments[0].kinds <= {TEXT}:
        return OF_KINDS[TEXT].called(LOWERED)
    changed = frozenset(word.lower() for word in words.known)
    return Shape(OF_KINDS[TEXT].kinds, words=Words(changed, words.open, words.stated))


def _weekday(arguments: Sequence[Shape]) -> Shape:
    name = "time.weekday(...)"
    return Shape(OF_KINDS[TEXT].kinds, words=Words(frozenset(_DAYS)), name=name)


def _type_name(arguments: Sequence[Shape]) -> Shape:
    return Shape(OF_KINDS[TEXT].kinds, words=Words(frozenset(NAMES)), name="type_name(...)")


def _number(arguments: Sequence[Shape]) -> Shape:
    return A_NUMBER


def _numbers(arguments: Sequence[Shape]) -> Shape:
    return Shape(A_LIST.kinds, items=A_NUMBER)


_RESULTS: Final[Mapping[str, Callable[[Sequence[Shape]], Shape]]] = {
    "min": _first_elements,
    "max": _first_elements,
    "sort": _sorted,
    "object.union": _joined,
    "object.keys": _object_keys,
    "lower": _lowered,
    "time.weekday": _weekday,
    "type_name": _type_name,
    "time.clock": _numbers,
    "time.date": _numbers,
    "time.parse_rfc3339_ns": _number,
    "time.now_ns": _number,
    "sum": _number,
    "product": _number,
    "abs": _number,
    "ceil": _number,
    "floor": _number,
    "round": _number,
    "to_number": _number,
    "indexof": _number,
}
