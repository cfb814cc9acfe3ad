from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def secrets_corpus() -> list[dict[str, Any]]:
    repository = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("AGENTTOOL_CORPORA", repository.parent / "shared" / "corpora"))
    path = folder / "secrets.jsonl"
    if not path.is_file():
        pytest.skip("the corpora are not here: set AGENTTOOL_CORPORA")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
