"""The readers and the redactor are used without a Governor, and bring nothing else of the package."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

FOUR_READERS = """
from agenttool_otel.readers import Surroundings, path_fact, shell_fact, sql_fact, url_fact

around = Surroundings(roots=("/tmp",), cwd="/tmp", home="/root")
result = {
    "path": path_fact("notes.txt", "/path", around, access="read")["inside"],
    "url": url_fact("https://example.org/a", "/url", around)["valid"],
    "shell": shell_fact("ls -l src | wc -l", "/command", around)["read_only"],
    "sql": sql_fact("select a from t", "/query")["read_only"],
}
"""

ONE_TEXT_EACH = """
from agenttool_otel.readers import path_fact, shell_fact, sql_fact, url_fact

facts = [path_fact("a"), url_fact("https://example.org"), shell_fact("ls"), sql_fact("select 1")]
result = [(fact["argument"], fact["inferred"]) for fact in facts]
"""

REDACTOR = """
from agenttool_otel.redaction import Redactor

done = Redactor().redact({"note": "password=hT7kQ92mzXw04LqPv8Rt"})
result = "hT7kQ92mzXw04LqPv8Rt" in str(done.value)
"""


def run(program: str) -> tuple[Any, set[str]]:
    """Return what a fresh process has in ``result``, and the rooms of the package it imported."""
    whole = f"{program}\nimport json, sys\nprint(json.dumps([result, list(sys.modules)]))\n"
    done = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, timeout=120, check=True
    )
    result, modules = json.loads(done.stdout)
    own = {name for name in modules if name.startswith("agenttool_otel.")}
    own.remove("agenttool_otel.govern")  # an empty package: the root's lazy names are behind it
    return result, {name.split(".")[1] for name in own}


@pytest.fixture(scope="module")
def four() -> tuple[Any, set[str]]:
    return run(FOUR_READERS)


def test_each_reader_answers(four: tuple[Any, set[str]]) -> None:
    assert four[0] == {"path": True, "url": True, "shell": True, "sql": True}


def test_readers_bring_no_other_room(four: tuple[Any, set[str]]) -> None:
    assert four[1] == {"readers", "values"}


def test_a_text_alone_is_enough() -> None:
    result, rooms = run(ONE_TEXT_EACH)
    assert result == [["", False]] * 4
    assert rooms == {"readers", "values"}


def test_the_redactor_brings_no_other_room() -> None:
    still_there, rooms = run(REDACTOR)
    assert not still_there
    assert rooms == {"redaction", "values"}
