"""Which attributes say which fields, and what an event says in the fields of the standard's
records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agenttool_otel.names import Attr, GenAI
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.tables import load_table

WORDS: Final[dict[str, dict[str, str]]] = {
    kind: {
        getattr(holder, name): word
        for holder in (GenAI, Attr)
        for name, word in table.get(holder.__name__, {}).items()
    }
    for kind, table in load_table(__package__, "words.json").items()
}
"""By what is told of (``record``: what an event says of any), each attribute with the field that it
says.
"""
_WORDS: Final = WORDS["record"]


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
