"""Tools with a file system of their own."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import ConfigurationError
from agenttool_otel.testing import StaticEngine, capture


def places(path_base: Any, *paths: str) -> list[str]:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        read = captured.governor.govern(
            lambda path: path, name="read", path_args=["path"], path_base=path_base, read_only=True
        )
        for path in paths:
            read(path)
    facts = [document["facts"]["paths"] for document in engine.documents]
    return [fact["resolved"] for found in facts for fact in found]


def test_a_path_lies_below_the_base() -> None:
    assert places("/srv/site", "/etc/passwd", "b") == ["/srv/site/etc/passwd", "/srv/site/b"]


def test_a_path_that_climbs_leaves_the_base() -> None:
    assert places("/srv/site", "/../../etc/passwd") == ["/etc/passwd"]


def test_the_longest_beginning_counts() -> None:
    bases = {"/": "/files", "/notes/": "/srv/notes"}
    assert places(bases, "/notes/a", "/notesbook") == ["/srv/notes/a", "/files/notesbook"]


def test_a_key_of_a_store_is_no_file() -> None:
    assert places({"/": "/files", "/notes/": "nowhere"}, "/notes/a") == []


def test_a_path_that_climbs_out_of_a_store_is_a_file() -> None:
    assert places({"/": "/files", "/notes": "nowhere"}, "/notes/../../etc") == ["/etc"]


def test_a_tool_whose_files_are_nowhere_has_no_paths() -> None:
    assert places("nowhere", "/etc/passwd") == []


@pytest.mark.parametrize("path", ["/./docs/a", "//docs/a", "/docs/./a", "docs//a", "./docs/a"])
def test_a_path_belongs_to_its_beginning_however_written(path: str) -> None:
    assert places({"/": "nowhere", "/docs/": "/srv/docs"}, path) == ["/srv/docs/a"]


@pytest.mark.parametrize("path_base", ["site", {"a": "/b"}, {3: "/b"}, {"/a": "b"}, {"/a": 3}])
def test_a_base_has_to_be_absolute(path_base: Any) -> None:
    with pytest.raises(ConfigurationError, match="path_base"):
        places(path_base, "a")
