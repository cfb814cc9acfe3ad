"""What becomes of a held call: its error, its record, its span and its story."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from held_calls import HOLDS, READ, Run, held, run_by, write
from token_texts import secret_path

from agenttool_otel import ToolResult, enforcement
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import why
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import Attr, ErrorClass, Event, FailClosedCause
from agenttool_otel.testing import Capture, StaticEngine, capture, decision
