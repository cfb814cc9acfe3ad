"""Which bundles are parsed, and what an engine decides, for tests of what is not compiled again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.engines import evaluation
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.rego.syntax import Program
from agenttool_otel.policy.samples import sample_documents


def parsings(monkeypatch: pytest.MonkeyPatch) -> list[Bundle]:
    """Note from now on which bundles are parsed."""
    parsed: list[Bundle] = []
    load: Callable[[Bundle], Any] = evaluation.load_program

    def noting(given: Bundle) -> Any:
        parsed.append(given)
        return load(given)

    monkeypatch.setattr(evaluation, "load_program", noting)
    return parsed


def word_of(engine: EmbeddedEngine) -> str:
    (document,) = sample_documents(Program([]), 1)
    return str(engine.evaluate(EntryPoint.DECISION, document, timeout=5.0).value["behavior"])
