"""Changes to a path that must not change what it is, and those that must."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.paths import path_fact
from agenttool_otel.readers.paths.sensitive import fold_name, sensitive_class
from agenttool_otel.readers.types import PathFact

ENV = FactEnvironment(roots=("/srv/ws",), cwd="/srv/ws", home="/home/agent", read_file_system=False)
KEPT = ("lexical", "inside", "sensitive", "roots")
SENSITIVE = [
    ".git/config",
    ".ssh/id_rsa",
    ".env",
    ".env.local",
    ".cursor/mcp.json",
    ".vscode/settings.json",
    ".agenttool/policy.rego",
    "a/.aws/credentials",
    "terraform.tfstate",
    "../../etc/shadow",
    "src/main.py",
    "README.md",
    ".gitignore",
]


def fact_of(text: str) -> PathFact:
    return path_fact(text, argument="/path", access="write", surroundings=ENV)


def kept(text: str) -> dict[str, object]:
    fact = fact_of(text)
    return {key: fact[key] for key in KEPT}  # type: ignore[literal-required]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(SENSITIVE),
    st.lists(st.sampled_from(["./", "/", "x/../", "src/./../"]), max_size=4),
    st.data(),
)
def test_empty_dot_and_undone_components_change_nothing(
    text: str, filler: list[str], data: st.DataObject
) -> None:
    changed = text
    for piece in filler:
        places = [index + 1 for index, letter in enumerate(changed) if letter == "/"] + (
            [0] if piece != "/" else []
        )
        if places:
            at = data.draw(st.sampled_from(places))
            changed = changed[:at] + piece + changed[at:]
    assert kept(changed) == kept(text)
    assert kept(f"/srv/ws/{changed}") == kept(text)


@pytest.mark.parametrize("text", SENSITIVE)
def test_the_class_of_a_place_ignores_case_and_ignored_letters(text: str) -> None:
    wanted = fact_of(text)["sensitive"]
    assert fact_of(text.upper())["sensitive"] == wanted
    assert fact_of(text.title())["sensitive"] == wanted
    name = text.rpartition("/")[2]
    for hidden in ("\u200b", "\u200c", "\u200d", "\ufeff", "\u2060", "\u00ad", "\ufe0f", "\u202e"):
        assert fact_of(text.replace(name, name[:2] + hidden + name[2:]))["sensitive"] == wanted, (
            hidden
        )
    wide = "".join(chr(ord(letter) + 0xFEE0) if letter not in "/" else letter for letter in text)
    if ".." not in text:
        assert fact_of(wide)["sensitive"] == wanted


@pytest.mark.parametrize("text", [text for text in SENSITIVE if not text.startswith("..")])
@pytest.mark.parametrize("suffix", [".", " ", "...", ". .", "::$DATA", ":x"])
def test_a_windows_suffix_is_told_and_does_not_hide_the_class(text: str, suffix: str) -> None:
    fact = fact_of(text + suffix)
    assert fact["windows"]
    assert not fact["certain"]
    assert fact["sensitive"] == fact_of(text)["sensitive"]


@settings(max_examples=300)
@given(st.text(max_size=20))
def test_folding_a_name_twice_changes_nothing(name: str) -> None:
    once = fold_name(name)
    assert fold_name(once) in (once, fold_name(unicodedata.normalize("NFKC", once)))
    assert (
        sensitive_class(f"/{name}", None) == sensitive_class(f"/{name.swapcase()}", None)
        or not name.isascii()
    )


def test_a_decomposed_name_without_a_composed_twin_is_fine(tmp_path: Path) -> None:
    env = FactEnvironment(roots=(str(tmp_path),), cwd=str(tmp_path))
    decomposed = "cafe\u0301"
    (tmp_path / decomposed).write_text("x")
    fact = path_fact(decomposed, argument="/path", access="read", surroundings=env)
    if os.path.exists(tmp_path / "caf\u00e9"):
        pytest.skip("this file system takes both spellings for one name")
    assert (fact["rejected"], fact["inside"]) == (None, True)
    (tmp_path / "caf\u00e9").write_text("y")
    fact = path_fact(decomposed, argument="/path", access="read", surroundings=env)
    assert (fact["rejected"], fact["inside"]) == ("not_normalized", False)


def test_a_tool_without_such_arguments_loads_no_parser() -> None:
    code = (
        "import sys\n"
        "from agenttool_otel.facts import plan_facts\n"
        "schema = {'type': 'object', 'properties': {'n': {'type': 'integer'}}}\n"
        "assert plan_facts(schema=schema, read_only=True) is None\n"
        "loaded = {'ada_url', 'idna', 'tree_sitter', 'sqlglot', 'agenttool_otel.readers.paths'} & set(sys.modules)\n"
        "sys.exit(' '.join(sorted(loaded)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")
