"""Patterns that are data must be ones that the engine of regular expressions takes: it has bounds
of its own.
"""

from __future__ import annotations

from agenttool_otel.redaction.detectors.statements import STATEMENTS
from agenttool_otel.redaction.detectors.token_formats import TOKEN_RULES
from agenttool_otel.redaction.patterns import compile_pattern


def test_every_pattern_of_the_tables_can_be_compiled() -> None:
    for row in (*TOKEN_RULES, *STATEMENTS):
        compile_pattern(row.pattern)
