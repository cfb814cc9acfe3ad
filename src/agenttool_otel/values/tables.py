"""The tables that ship with the package as data files, and their rows as objects."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final, TypeVar

_Row = TypeVar("_Row")

_FROM_DATA: Final[dict[str, Callable[[Any], Any]]] = {
    "frozenset[str]": frozenset,
    "tuple[str, ...]": tuple,
    "tuple[bytes, ...]": lambda words: tuple(word.encode() for word in words),
    "re.Pattern[str]": re.compile,
    "re.Pattern[str] | None": re.compile,
}


def load_table(package: str, path: str) -> Any:
    """Return the content of a TOML or JSON file of a package."""
    text = resources.files(package).joinpath(path).read_text("utf-8")
    return tomllib.loads(text) if path.endswith(".toml") else json.loads(text)


def row_of(kind: type[_Row], values: Mapping[str, Any]) -> _Row:
    """Make a record of a table's row: sets, tuples and patterns where its fields are
    declared so.
    """
    types = {
        name: str(getattr(type_, "__forward_arg__", type_))
        for name, type_ in kind.__annotations__.items()
    }
    return kind(
        **{name: _from_data(types[name], value) for name, value in values.items() if name in types}
    )


def _from_data(kind: str, value: Any) -> Any:
    if kind.startswith("dict[str, "):
        return {name: _from_data(kind[10:-1], item) for name, item in value.items()}
    convert = _FROM_DATA.get(kind)
    return value if convert is None else convert(value)
