"""What is read of a document, as JSON: two documents with the same projection get the same answer.

Members stand in a fixed order without their names, so the place shows which it is. What is missing is
``{}``, which nothing that is there gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.policy.bundles.flows import (
    AT,
    BEGINS,
    COUNT,
    EACH,
    EMPTY,
    ENDS,
    HOLDS,
    KEYS,
    MARK,
    TRUTH,
    TYPE,
    WORD,
)
from agenttool_otel.policy.rego.syntax import Path

Take = Callable[[Any], Any]
"""Takes what is read out of a value."""

_MISSING: Final = object()


@dataclass(slots=True)
class _Node:
    """What is read of one value."""

    whole: bool = False  # all of it
    views: list[str] = field(default_factory=list)  # what only some builtins see of it
    members: dict[str, _Node] = field(default_factory=dict)  # some members, if it is an object
    each: _Node | None = None  # each element of an array, or value of an object
    at: dict[int, _Node] = field(default_factory=dict)  # some elements


def projection(paths: Iterable[Path], words: frozenset[str]) -> Take:
    """Return what takes out of a document what is read of it.

    Args:
        paths: what is read.
        words: the texts that a text is compared with.
    """
    root = _Node()
    for path in sorted(paths):
        node = root
        for part in path:
            if part == EACH:
                node.each = node.each or _Node()
                node = node.each
            elif part.startswith(AT):
                node = node.at.setdefault(int(part.removeprefix(AT)), _Node())
            elif part.startswith(MARK):
                node.views.append(part)
                break
            else:
                node = node.members.setdefault(part, _Node())
        else:
            node.whole = True
    return _take(root, words)


def _take(node: _Node, words: frozenset[str]) -> Take:
    if node.whole:
        return _all
    views = [_view(view, words) for view in node.views]
    members = [(name, *_leaf(inner, words)) for name, inner in node.members.items()]
    each = None if node.each is None else _take(node.each, words)
    places = [(place, _take(inner, words)) for place, inner in node.at.items()]
    if len(views) == 1 and not members and each is None and not places:
        return views[0]

    of_empty: list[Any] = []

    def take(value: Any) -> Any:
        if of_empty and value == []:
            return of_empty  # most facts are empty lists
        found = [view(value) for view in views] if views else []
        if members:
            # what is no object has no members, in Rego too
            get = value.get if type(value) is dict else {}.get
            for name, is_word, inner in members:
                part = get(name, _MISSING)
                if part is _MISSING:
                    found.append({})
                elif is_word and (part is True or part is False or part is None):
                    found.append(part)  # most are, and a call costs as much as all the rest
                else:
                    found.append(inner(part))
        if each is not None:
            if type(value) is list:
                found.append([each(item) for item in value])
            elif type(value) is dict:
                found.append({name: each(item) for name, item in value.items()})
            else:
                found.append(type(value).__name__)  # it has no elements
        for place, inner in places:
            if type(value) is not list:
                found.append({"": value})
            else:
                found.append(inner(value[place]) if 0 <= place < len(value) else {})
        return found

    of_empty += take([])
    return take


def _leaf(node: _Node, words: frozenset[str]) -> tuple[bool, Take]:
    """Return whether only a member's word is read, and what takes out what is read of it."""
    is_word = node.views == [WORD] and not (node.whole or node.members or node.each or node.at)
    return is_word, _take(node, words)


def _view(view: str, words: frozenset[str]) -> Take:
    if view == WORD:

        def word(value: Any) -> Any:
            kind = type(value)
            if kind is str:
                return value if value in words else []
            return [value] if kind in (list, dict) else value

        return word
    for prefix, test in _TESTS.items():
        if view.startswith(prefix):
            return _part_view(test, view.removeprefix(prefix))
    return _VIEWS[view]


def _part_view(test: Callable[[str, str], bool], part: str) -> Take:
    def has_part(value: Any) -> Any:
        return test(value, part) if type(value) is str else [type(value).__name__]

    return has_part


def _all(value: Any) -> Any:
    return [value]


def _count(value: Any) -> Any:
    return len(value) if type(value) is list else [value]


def _names_or_count(value: Any) -> Any:
    if type(value) is dict:
        return sorted(value)
    return len(value) if type(value) is list else type(value).__name__


def _type(value: Any) -> str:
    return type(value).__name__


def _empty(value: Any) -> list[Any]:
    return [type(value).__name__, value in ("", [], {})]


def _truth(value: Any) -> bool:
    return value is not False


def _keys(value: Any) -> Any:
    return sorted(value) if type(value) is dict else {"": value}


def _is_no_text(value: Any) -> bool:
    return bool(value == "")


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    BEGINS: str.startswith,
    ENDS: str.endswith,
    HOLDS: str.__contains__,
}

_VIEWS: Final[dict[str, Take]] = {
    KEYS: _names_or_count,
    COUNT: _count,
    TYPE: _type,
    EMPTY: _empty,
    TRUTH: _truth,
    # of arguments, and of a program whose flows are not known (``rego.VIEWS``)
    MARK + "empty": _is_no_text,
    MARK + "is_object": _is_object,
    MARK + "is_string": _is_string,
    MARK + "object.keys": _keys,
}
