"""What an event says, in the fields of the standard's records instead of a span's attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agenttool_otel.names import Attr, GenAI
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.tables import load_table

_WORDS: Final[dict[str, str]] = {
    getattr(holder, name): word
    for holder in (Attr, GenAI)
    for name, word in load_table(__package__, "event_words.json")[holder.__name__].items()
}
"""The standard's field for what an event's attribute says."""


def standard_words(attributes: Mapping[str, Any]) -> JsonObject:
    """Return what an event says in the fields of the standard's records."""
    said: JsonObject = {}
    for name, value in attributes.items():
        if (path := _WORDS.get(name)) is not None:
            first, _, rest = path.partition(".")
            if rest:
                said.setdefault(first, {})[rest] = value
            else:
                said[first] = value
    return said
