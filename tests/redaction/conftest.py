from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.redaction import Redactor, patterns
from agenttool_otel.redaction.detectors import statements, tokens
from agenttool_otel.redaction.prefilter import prefilter


@pytest.fixture(scope="session")
def secrets_corpus() -> list[dict[str, Any]]:
    repository = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("AGENTTOOL_CORPORA", repository.parent / "shared" / "corpora"))
    path = folder / "secrets.jsonl"
    if not path.is_file():
        pytest.skip("the corpora are not here: set AGENTTOOL_CORPORA")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def python_re(monkeypatch: pytest.MonkeyPatch) -> Iterator[Redactor]:
    """Give a redactor that runs on Python's own regular expressions, as where google-re2 can't be
    imported.
    """
    caches = (patterns.compile_pattern, prefilter, statements.keyword_index, tokens.token_detector)
    monkeypatch.setattr(patterns, "_re2", lambda: None)
    for cache in caches:
        cache.cache_clear()
    yield Redactor()
    for cache in caches:
        cache.cache_clear()
