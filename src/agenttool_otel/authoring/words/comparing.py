"""Comparisons that have one answer whatever a call is: ``input.tool.kind == "shell"``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agenttool_otel.authoring.words.shapes import (
    COLLECTIONS,
    LIST,
    NAMES,
    NULL,
    NUMBER,
    SET,
    TEXT,
    Shape,
    Words,
    elements,
)
from agenttool_otel.context.validate import did_you_mean

EQUAL: Final = frozenset({"Eq"})
DIFFERENT: Final = frozenset({"Ne"})
ORDERED: Final = frozenset({"Lt", "Le", "Gt", "Ge"})

_NUMBER: Final = re.compile(r"\s*[-+]?\d[\d_,]*(\.\d+)?\s*")
_WHOLE_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = "input.time"
_MAX_SHOWN: Final = 12

LOWERED: Final = "lower(...)"
"""What a message calls a text in lower case."""


class Wrong(NamedTuple):
    """What is wrong with an expression."""

    message: str  # in words
    certain: bool = True  # it can't be meant


def wrong_comparison(operator: str, left: Shape, right: Shape) -> Wrong | None:
    """Return what is wrong with a comparison.

    Args:
        operator: the syntax tree's name of it: ``Eq``, ``Ne``, ``Lt`` ...
        left: what stands on its left.
        right: what stands on its right.
    """
    if not left.kinds or not right.kinds:
        return None
    if operator in ORDERED:
        return _wrong_order(left, right)
    return _wrong_equality(left, right, negated=operator in DIFFERENT)


def _wrong_equality(left: Shape, right: Shape, *, negated: bool) -> Wrong | None:
    if not left.could_be(right.kinds):
        # x != null is a habit, and harmless
        if negated and NULL in left.kinds | right.kinds:
            return None
        never = "always differs from" if negated else "never equals"
        return Wrong(f"{described(left)} {never} {described(right)}{_instead(left, right)}")
    lowered = _wrong_case(left, right) or _wrong_case(right, left)
    if lowered is not None:
        return lowered
    if left.kinds == right.kinds == {TEXT}:
        return wrong_words(left, right, negated=negated)
    if TEXT in left.kinds & right.kinds and (left.kinds <= {TEXT, NULL} or right.kinds <= {TEXT}):
        return wrong_words(left, right, negated=negated)
    return None


def _wrong_case(lowered: Shape, other: Shape) -> Wrong | None:
    if lowered.name != LOWERED or other.words is None or not other.words.stated:
        return None
    for word in sorted(other.words.known):
        if word != word.lower():
            return Wrong(f"{LOWERED} never equals {word!r}, which has capital letters")
    return None


def _instead(left: Shape, right: Shape) -> str:
    """Return what was meant by comparing a list with one of its elements."""
    for whole, part in ((left, right), (right, left)):
        if whole.kinds <= {LIST, SET} and whole.kinds and not part.could_be(COLLECTIONS):
            return f'; write "... in {whole.name or "it"}"'
    return ""


def wrong_words(left: Shape, right: Shape, *, negated: bool = False) -> Wrong | None:
    """Return what is wrong with two texts that can never be equal."""
    first, second = left.words, right.words
    if first is None or second is None or not first.known.isdisjoint(second.known):
        return None
    # both are written in the rules or data: two different constants, which the author can see
    if first.stated and second.stated:
        return None
    if first.stated:
        return _foreign(right, second, first, negated=negated)
    return _foreign(left, first, second, negated=negated)


def _foreign(shape: Shape, ours: Words, written: Words, *, negated: bool) -> Wrong | None:
    """Return that words are none of a vocabulary."""
    words = sorted(written.known - {""})
    if not words:
        return None
    word = words[0]
    near = nearest(word, ours)
    verb = "is always different from" if negated else "can never be"
    if ours.open and not near:
        message = (
            f"{called(shape)} is {word!r} only if a tool states a word of its own; {_listed(ours)}"
        )
        return Wrong(message, certain=False)
    return Wrong(f"{called(shape)} {verb} {word!r}{near}; {_listed(ours)}")


def nearest(word: str, ours: Words) -> str:
    """Return what was meant by a word, as `` (did you mean 'x'?)``; else an empty text."""
    near = did_you_mean(word, ours.known)
    if near:
        return near
    # "shell" for "shell_command", "delete" for "tree_deleter"
    for known in sorted(ours.known, key=len):
        if len(word) > 3 and word.lower() in known:
            return f" (did you mean {known!r}?)"
    return ""


def _listed(ours: Words) -> str:
    words = sorted(ours.known)
    if len(words) > _MAX_SHOWN:
        words = [*words[:_MAX_SHOWN], "..."]
    return f"it is one of {', '.join(words)}"


def _wrong_order(left: Shape, right: Shape) -> Wrong | None:
    for side, other in ((left, right), (right, left)):
        if _is_time(side) and _is_no_time(other):
            return Wrong(
                f'{_TIME} is a whole time such as "2026-11-20T12:00:00Z", so comparing it with'
                f" {described(other)} has the same answer always; use time.clock"
            )
    if not left.could_be(right.kinds):
        return Wrong(
            f"{described(left)} is compared with {described(right)}: Rego orders values of different"
            " types by their types, so the answer is always the same"
        )
    for side, other in ((left, right), (right, left)):
        text = _numeral(side)
        if text is not None and other.could_be({NUMBER}):
            return Wrong(
                f"{called(other)} is compared with the text {text!r}: every text is larger than every"
                " number; write the number without quotes"
            )
        if text is not None:
            return Wrong(
                f"{called(other)} and the text {text!r} are compared letter by letter",
                certain=False,
            )
    return None


def _numeral(shape: Shape) -> str | None:
    """Return a text that is written out and looks like a number."""
    if shape.kinds != {TEXT} or shape.words is None or not shape.words.stated:
        return None
    for word in sorted(shape.words.known):
        if _NUMBER.fullmatch(word):
            return word
    return None


def _is_time(shape: Shape) -> bool:
    return shape.name == _TIME


def _is_no_time(shape: Shape) -> bool:
    if shape.words is None:
        return False
    return not any(_WHOLE_TIME.match(word) for word in shape.words.known)


def wrong_membership(value: Shape, collection: Shape) -> Wrong | None:
    """Return what is wrong with ``value in collection``."""
    if not collection.kinds or not value.kinds:
        return None
    if not collection.could_be(COLLECTIONS):
        return Wrong(
            f"{described(collection)} has no elements, so nothing is in it; contains() looks for a part"
            " of a text"
        )
    if not collection.kinds <= COLLECTIONS:
        return None
    items = elements(collection)
    if not items.kinds or not items.known:
        return None
    if not value.could_be(items.kinds):
        held = described(items.called(""))
        return Wrong(f"{called(collection)} holds {held} and never {described(value)}")
    if not value.kinds <= {TEXT, NULL} or not items.kinds <= {TEXT, NULL}:
        return None
    return _wrong_members(value, items.called(collection.name))


def _wrong_members(value: Shape, items: Shape) -> Wrong | None:
    """Return the element that a value of a vocabulary can never be: one of ``{"low", "hihg"}``."""
    ours, written = value.words, items.words
    if ours is None or written is None:
        return None
    if not written.stated:
        return wrong_words(items, value)
    if ours.stated:
        return None
    for word in sorted(written.known - ours.known):
        only = Words(frozenset({word}), stated=True)
        wrong = _foreign(value, ours, only, negated=False)
        if wrong is not None:
            return wrong
    return None


def called(shape: Shape) -> str:
    """Return what a message calls a value."""
    return shape.name or described(shape)


def described(shape: Shape) -> str:
    """Return a value's name and type: ``input.actor.roles (a list)``."""
    kinds = kinds_named(shape)
    constant = _constant(shape)
    if constant:
        kinds = f"{kinds} {constant}" if shape.kinds == {TEXT} else constant
    if not shape.name:
        return kinds
    return f"{shape.name} ({kinds})"


def _constant(shape: Shape) -> str:
    if shape.words is not None and shape.words.stated and len(shape.words.known) == 1:
        return repr(next(iter(shape.words.known)))
    if shape.value is not None:
        return str(shape.value).lower()
    return ""


def kinds_named(shape: Shape) -> str:
    """Return the names of a value's types: ``a text or null``."""
    names = [name for kind, name in NAMES.items() if kind in shape.kinds]
    if len(names) == len(NAMES):
        return "a value"
    return " or ".join(names) or "nothing"
