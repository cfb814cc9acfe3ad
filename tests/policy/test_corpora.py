"""The corpora of paths and URLs through governed tools and the stock bundle, as a user has them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import agent_context
from agenttool_otel.testing import Capture, capture

OWN = Path(__file__).parents[1] / "facts" / "corpus"
SHARED = Path(os.environ.get("AGENTTOOL_CORPORA", Path(__file__).parents[3] / "shared" / "corpora"))

ALLOWED_HOSTS_NEEDED = {"own-names-of-others-2", "own-names-of-others-4"}
"""They imitate a host that only ``configure(allowed_hosts=...)`` makes worth that."""


def rows(name: str) -> list[Any]:
    found: list[dict[str, Any]] = []
    for folder in (SHARED, OWN):
        file = folder / f"{name}.jsonl"
        if file.exists():
            found += [
                json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line
            ]
    return [pytest.param(row, id=row["id"]) for row in found if "race" not in row.get("setup", {})]


@pytest.fixture(scope="module")
def stock() -> Iterator[dict[str, Any]]:
    with capture(policy=None) as captured:
        yield tools(captured)


def tools(captured: Capture) -> dict[str, Any]:
    def read_file(path: str) -> str:
        """Read a file."""
        return path

    def write_file(path: str, text: str) -> str:
        """Write a file."""
        return path + text

    def fetch(url: str) -> str:
        """Fetch a page."""
        return url

    govern = captured.governor.govern
    writes: dict[str, Any] = {"access_kinds": ["file_write"], "write_effects": ["local_persistent"]}
    return {
        "read": govern(
            read_file, tool_kind="file_operation", access_kinds=["file_read"], read_only=True
        ),
        "write": govern(
            write_file, tool_kind="file_operation", read_only=False, destructive=False, **writes
        ),
        "fetch": govern(
            fetch, access_kinds=["network"], read_only=True, destructive=False, open_world=True
        ),
    }


def prepare(setup: dict[str, Any], project: Path, base: Path) -> None:
    for key, value in setup.items():
        kind = key.rstrip("0123456789")
        if kind == "mkdir":
            (project / value).mkdir(parents=True, exist_ok=True)
            continue
        place = project / (value if isinstance(value, str) else value[0])
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "symlink":
            place.symlink_to(value[1].replace("/srv/ws", str(base)))
        elif kind == "hardlink":
            os.link(value[1].replace("/srv/ws", str(base)), place)
        elif kind == "fifo":
            os.mkfifo(place)
        else:
            place.write_text("x")


@pytest.mark.parametrize("row", rows("paths"))
def test_a_path_of_the_corpus_is_decided_as_it_should_be(
    row: dict[str, Any], stock: dict[str, Any], tmp_path: Path
) -> None:
    base = tmp_path / "ws"
    project = base / "project"
    for folder in ("project/src", "project/deeply/nested", "project2", "project_backup", "other"):
        (base / folder).mkdir(parents=True)
    for file in ("project/src/index.js", "project/deeply/nested/file.txt", "project2/secret"):
        (base / file).write_text("x")
    prepare(row.get("setup", {}), project, base)
    text = row["input"].replace("/srv/ws", str(base))
    reads = row["op"] == "read"
    arguments = {"path": text} if reads else {"path": text, "text": "x"}
    with agent_context(
        actor="agent:a", session_id="s", roots=[str(project)], cwd=str(project), interactive=True
    ):
        behavior = stock["read" if reads else "write"].tool.check(arguments).behavior.value
    if row["expected"] == "inside":
        # An odd name that open() would find inside is asked about, because a later program may read
        # it in another way.
        assert behavior != "deny", row["why"]
    else:
        assert behavior != "allow", row["why"]


@pytest.mark.parametrize("row", rows("urls"))
def test_a_url_of_the_corpus_is_decided_as_it_should_be(
    row: dict[str, Any], stock: dict[str, Any]
) -> None:
    with agent_context(actor="agent:a", session_id="s", roots=[], interactive=True):
        behavior = stock["fetch"].tool.check({"url": row["input"]}).behavior.value
    # Stock resolves no names: that leaves the process. What only a resolver tells is for
    # resolve_dns.
    if row["expected"] != "deny" or row["id"] in ALLOWED_HOSTS_NEEDED or row.get("needs") == "dns":
        assert behavior == "allow", row["why"]
    else:
        assert behavior != "allow", row["why"]
