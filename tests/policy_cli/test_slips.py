"""Each slip of slips.toml is named, without an OPA program, in the file where it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from policy_project import write

from agenttool_otel.authoring.checking import check_text
from agenttool_otel.authoring.project import load_project

SLIPS: Final[list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("slips.toml").read_text("utf-8")
)["slip"]
MANIFEST: Final = (
    '{"revision": "t", "rego_version": 1, "roots": ["agenttool/custom", "agenttool/settings"]}'
)
HEAD: Final = """# METADATA
# title: Ours
# scope: package
# schemas:
#   - input: schema.input
package {package}

"""


def _placed(text: str, number: int) -> str:
    """The text of a row, under a package and a name of its own."""
    return text.replace("agenttool.custom.x", f"agenttool.custom.x{number}").replace(
        '"acme.x"', f'"acme.x{number}"'
    )


def _files(number: int, row: Mapping[str, Any]) -> dict[str, str]:
    package = f"agenttool.custom.x{number}"
    files = {}
    if "rule" in row:
        text = HEAD.format(package=package) + _placed(row["rule"], number)
        files[f"agenttool/custom/x{number}/x.rego"] = text
    if "settings" in row:
        text = HEAD.format(package=package) + "limit := 5\n"
        files[f"agenttool/custom/x{number}/x.rego"] = text
        files["agenttool/settings/data.json"] = row["settings"]
    if "data" in row:
        files[f"agenttool/custom/x{number}/data.json"] = row["data"]
    if "test" in row:
        text = f"package agenttool.custom_test.x{number}\n\n" + _placed(row["test"], number)
        files[f"agenttool/custom/x{number}/x_test.rego"] = text
    return files


def _is_alone(row: Mapping[str, Any]) -> bool:
    return "settings" in row or row.get("alone", False)


def _messages(folder: Path) -> list[str]:
    """What the checks name, with its place."""
    found = []
    for check in check_text(load_project(folder)):
        for problem in check.problems:
            found.append(f"{problem.place}: {problem.message}")
    return found


@pytest.fixture(scope="module")
def all_messages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the checks name in a project with all rows, each in a package of its own."""
    folder = write(tmp_path_factory.mktemp("slips"), {".manifest": MANIFEST})
    for number, row in enumerate(SLIPS):
        if not _is_alone(row):
            write(folder, _files(number, row))
    return _messages(folder)


@pytest.mark.parametrize("number", range(len(SLIPS)), ids=[row["name"] for row in SLIPS])
def test_it_is_named(number: int, all_messages: list[str], tmp_path: Path) -> None:
    row = SLIPS[number]
    mine = [message for message in all_messages if f"custom/x{number}/" in message]
    mine += [message for message in all_messages if f"custom.x{number}." in message]
    if _is_alone(row):
        mine = _messages(write(tmp_path, {".manifest": MANIFEST, **_files(number, row)}))
    about = [text for text in mine if all(word in text for word in row["words"])]
    assert about, mine


def test_there_are_more_than_a_hundred() -> None:
    assert len(SLIPS) > 100
    assert len({row["name"] for row in SLIPS}) == len(SLIPS)
