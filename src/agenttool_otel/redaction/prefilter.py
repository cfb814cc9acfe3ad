"""The first question about a text: can there be anything at all?

One linear search for every literal and shape that any detector needs. Most arguments and messages
of tool calls have none of them and cost nothing more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.detectors.assignments import KEYWORDS, NAME_END, service_words
from agenttool_otel.redaction.detectors.id_numbers import LABELS
from agenttool_otel.redaction.detectors.statements import STATEMENTS
from agenttool_otel.redaction.detectors.tables import HEAD
from agenttool_otel.redaction.detectors.token_formats import TOKEN_RULES
from agenttool_otel.redaction.patterns import Matcher, compile_pattern
from agenttool_otel.values.tables import load_table

_LEAST_LITERAL_BYTES: Final = 4


@lru_cache(maxsize=32)
def prefilter(extra: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> Matcher:
    """A matcher that matches wherever any built-in detector could."""
    tables = load_table(__package__, "prefilter.toml")
    short, everyday = set(tables["short_literals"]), set(tables["everyday_words"])
    literals = {word for rule in TOKEN_RULES for word in rule.keywords}
    literals = {word for word in literals if len(word) >= _LEAST_LITERAL_BYTES or word in short}
    literals |= {
        word for item in STATEMENTS if not (item.prefilter or item.named) for word in item.keywords
    }
    names = "|".join((KEYWORDS, *(re.escape(word) for word in words)))
    parts = (
        *tables["shapes"],
        *(
            shape.replace("<NAMES>", names).replace("<NAME_END>", NAME_END)
            for shape in tables["shapes_with_names"]
        ),
        *(item.prefilter for item in STATEMENTS if item.prefilter),
        HEAD,
        rf"(?:{LABELS})[^\r\n\d]{{0,28}}\d",
        rf"(?:{service_words()})[\w.\- ]*[\"'`\\\]]*\s*[:=,]",
        *sorted(re.escape(word) for word in literals - everyday),
        *extra,
    )
    return compile_pattern("(?i)" + "|".join(parts))
