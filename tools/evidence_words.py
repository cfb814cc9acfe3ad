"""Write the words that decision records hold in clear: names and words of the policy's input, of
the package's enumerations, and those that the stock rules compare with.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

from agenttool_otel import names
from agenttool_otel.evidence.words import words_in
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.rule_words import own_texts
from agenttool_otel.policy.types import PolicyInput
from agenttool_otel.values.words import OneOf

TARGET = Path(__file__).resolve().parent.parent / "src/agenttool_otel/evidence/data/vocabulary.txt"
SMALL_NUMBERS = 100


def typed_texts(annotation: Any) -> Iterator[str]:
    """Yield the names and words that a type of the contract states, at all depths."""
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, OneOf):
            yield from item.listed()
    if is_typeddict(annotation):
        for name, hint in get_type_hints(annotation, include_extras=True).items():
            yield name
            yield from typed_texts(hint)
    for argument in get_args(annotation):
        yield from typed_texts(argument)


def enumerated_texts() -> Iterator[str]:
    """Yield the members of the package's enumerations."""
    for _, found in inspect.getmembers(names, inspect.isclass):
        if issubclass(found, enum.StrEnum):
            yield from map(str, found)


def data_texts(value: Any) -> Iterator[str]:
    """Yield the names and texts of a bundle's data."""
    if isinstance(value, str):
        yield value
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from data_texts(item)
    if isinstance(value, list):
        for item in value:
            yield from data_texts(item)


def make_vocabulary() -> str:
    """Return the file: one word a line, sorted."""
    stock = load_bundle(default_bundle_path())
    texts = [*typed_texts(PolicyInput), *enumerated_texts(), *own_texts(stock)]
    texts += [*data_texts(stock.data), *map(str, range(SMALL_NUMBERS))]
    found = {word for text in texts for word in words_in(text) if word.isascii() and word.isalnum()}
    return "\n".join(sorted(found)) + "\n"


def main() -> int:
    """Write the file."""
    TARGET.write_text(make_vocabulary(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
