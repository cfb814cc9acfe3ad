"""The tables that ship with the package as data files, and their rows as objects."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, Final, TypeVar

_Row = TypeVar("_Row")


def _encoded(words: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in words)


def _pattern(pattern: str | Sequence[str]) -> re.Pattern[str]:
    if isinstance(pattern, str):
        return re.compile(pattern)
    # program_variables = ['PATH', 'PS4'], either of which matches
    return re.compile("|".join(pattern))


# by the text of a field's annotation
_FROM_DATA: Final[dict[str, Callable[[Any], Any]]] = {
    "frozenset[str]": frozenset,
    "tuple[str, ...]": tuple,
    "tuple[bytes, ...]": _encoded,
    "re.Pattern[str]": _pattern,
    "re.Pattern[str] | None": _pattern,
}


def load_table(package: str, path: str) -> Any:
    """Return the content of a TOML or JSON file of a package."""
    text = resources.files(package).joinpath(path).read_text("utf-8")
    if path.endswith(".toml"):
        return tomllib.loads(text)
    return json.loads(text)


def row_of(kind: type[_Row], values: Mapping[str, Any]) -> _Row:
    """Make a record of a table's row: sets, tuples and patterns where its fields are
    declared so.
    """
    members: dict[str, Any] = {}
    for name, annotation in kind.__annotations__.items():
        if name not in values:
            continue
        # a NamedTuple has ForwardRef("frozenset[str]") where a dataclass has the text
        declared = str(getattr(annotation, "__forward_arg__", annotation))
        members[name] = _from_data(declared, values[name])
    return kind(**members)


def _from_data(kind: str, value: Any) -> Any:
    if kind.startswith("dict[str, "):
        inner = kind.removeprefix("dict[str, ").removesuffix("]")
        return {name: _from_data(inner, item) for name, item in value.items()}
    convert = _FROM_DATA.get(kind)
    if convert is None:
        return value
    return convert(value)
