"""Write docs/openapi.json: what ``agenttool serve`` answers to, made from its models."""

from __future__ import annotations

import json
from pathlib import Path

from agenttool_otel.serve.operations import openapi

TARGET = Path(__file__).resolve().parent.parent / "docs" / "openapi.json"


def text() -> str:
    """Return the text of the file."""
    return json.dumps(openapi(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
