"""Safer calls in place of a shell command: the dedicated tool with its own argument names, or the
reading form.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel.policy.alternatives import shell_alternatives
from agenttool_otel.readers.shell import shell_fact


def tool(
    name: str,
    *arguments: str,
    kind: str = "file_operation",
    access: tuple[str, ...] = ("file_read",),
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "access_kinds": list(access),
        "argument_names": list(arguments),
    }


SHELL = tool(
    "shell_run",
    "command",
    kind="shell_command",
    access=("file_read", "file_write", "code_execution"),
)
TOOLS = {
    "read": tool("read", "path", "start_line", "end_line"),
    "glob": tool("glob", "path", "pattern", "kind"),
    "grep": tool("grep", "pattern", "path", "ignore_case", "include"),
    "shell_run": SHELL,
    "write": tool("write", "path", "text", access=("file_write",)),
}


def alternatives(
    command: str, tools: dict[str, dict[str, Any]] | None = None
) -> list[tuple[str, dict[str, Any]]]:
    found = shell_alternatives(
        shell_fact(command, argument="/command"), available=TOOLS if tools is None else tools
    )
    assert all(set(row) == {"tool", "arguments", "reason"} and row["reason"] for row in found)
    return [(row["tool"], row["arguments"]) for row in found]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a.txt", ("read", {"path": "a.txt"})),
        ("cat -n a.txt", ("read", {"path": "a.txt"})),
        ("cat -- -a", None),
        ("head a", ("read", {"path": "a", "start_line": 1, "end_line": 10})),
        ("head -n 5 a", ("read", {"path": "a", "start_line": 1, "end_line": 5})),
        ("head -5 a", ("read", {"path": "a", "start_line": 1, "end_line": 5})),
        ("head --lines=5 a", ("read", {"path": "a", "start_line": 1, "end_line": 5})),
        ("head -c 5 a", None),
        ("tail -n +7 a", ("read", {"path": "a", "start_line": 7})),
        ("tail -n 20 a", ("read", {"path": "a"})),
        (
            "sed -n '10,20p' src/a.py",
            ("read", {"path": "src/a.py", "start_line": 10, "end_line": 20}),
        ),
        ("sed -n 7p a", ("read", {"path": "a", "start_line": 7, "end_line": 7})),
        ("sed 's/a/b/' a", None),
        ("wc -l a", ("read", {"path": "a"})),
        ("wc a", None),
        ("ls", ("glob", {"path": ".", "pattern": "*"})),
        ("ls -la src", ("glob", {"path": "src", "pattern": "*"})),
        ("ls -al", ("glob", {"path": ".", "pattern": "*"})),
        ("ls -R src", ("glob", {"path": "src", "pattern": "**/*"})),
        ("ls *.py", ("glob", {"path": ".", "pattern": "*.py"})),
        ("find src -name '*.py'", ("glob", {"path": "src", "pattern": "**/*.py"})),
        ("find -name x", ("glob", {"path": ".", "pattern": "**/x"})),
        ("find . -type d -name x", ("glob", {"path": ".", "pattern": "**/x", "kind": "directory"})),
        ("find . -maxdepth 1 -type f", ("glob", {"path": ".", "pattern": "*", "kind": "file"})),
        ("find . -mtime -1", None),
        ("grep -n foo a.py", ("grep", {"pattern": "foo", "path": "a.py"})),
        ("grep -rn foo src", ("grep", {"pattern": "foo", "path": "src"})),
        ("grep -i foo a", ("grep", {"pattern": "foo", "path": "a", "ignore_case": True})),
        (
            "grep -rn --include='*.py' foo .",
            ("grep", {"pattern": "foo", "path": ".", "include": "*.py"}),
        ),
        ("grep foo", ("grep", {"pattern": "foo", "path": "."})),
        ("grep -v foo a", None),
        ("grep -c foo a", None),
        ("rg -n foo src", ("grep", {"pattern": "foo", "path": "src"})),
        ("rg -i foo", ("grep", {"pattern": "foo", "path": ".", "ignore_case": True})),
        ("rg foo -g '*.py'", ("grep", {"pattern": "foo", "path": ".", "include": "*.py"})),
        ("rg --hidden foo", None),
    ],
)
@pytest.mark.covers(
    "openboa-alternative-for-head",
    "openboa-alternative-for-sed",
    "openboa-alternative-for-wc",
    "openboa-alternative-for-ls",
    "openboa-alternative-for-find",
    "openboa-alternative-for-find-here",
    "openboa-alternative-for-find-type",
    "openboa-alternative-for-grep-i",
    "openboa-alternative-for-rg",
    "openboa-alternative-for-query-only",
)
def test_a_reading_command_is_answered_with_the_dedicated_tool(
    command: str, expected: tuple[str, dict[str, Any]] | None
) -> None:
    assert alternatives(command) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("find . -delete", "find ."),
        ("find . -name '*.tmp' -delete", "find . -name '*.tmp'"),
        ("find . -name x -exec rm {} \\;", "find . -name x"),
        ("find . -type f -fprint out", "find . -type f"),
        ("ls -la > out", "ls -la"),
        ("cat a.txt >> b.txt", "cat a.txt"),
        ("sort -o a a", "sort a"),
        ("sort --output=a b", "sort b"),
        ("sed -i s/a/b/ f", None),
        ("rm -rf x", None),
        ("echo $(rm x) > f", None),
        ("A=b ls > f", None),
        ("cat .env > x", None),
        ("cat *.txt > x", None),
        ("touch a", None),
        ("git push > x", None),
        ("find . -delete; rm x", None),
    ],
)
def test_a_command_that_writes_by_one_word_gets_its_reading_form(
    command: str, form: str | None
) -> None:
    assert alternatives(command) == ([] if form is None else [("shell_run", {"command": form})])
    if form is not None:
        assert shell_fact(form, argument="")["read_only"]


@pytest.mark.parametrize(
    "command", ["cat .env", "head -1 ~/.ssh/id_rsa", "ls ~/.aws", "grep -r AKIA .", "printenv"]
)
def test_reading_credentials_gets_no_advice(command: str) -> None:
    assert alternatives(command) == []


@pytest.mark.parametrize(
    "command", ["cat a | head", "cat a; cat b", "cd x && cat a", "cat ~/a", "cat < a", "cat", ""]
)
@pytest.mark.covers("openboa-no-alternative-for-more")
def test_what_is_not_one_plain_read_gets_no_dedicated_tool(command: str) -> None:
    assert alternatives(command) == []


def test_several_files_become_several_calls_or_one_with_a_list() -> None:
    assert alternatives("cat a b") == [("read", {"path": "a"}), ("read", {"path": "b"})]
    many = {"read_files": tool("read_files", "paths")}
    assert alternatives("cat a b", many) == [("read_files", {"paths": ["a", "b"]})]


@pytest.mark.parametrize(
    ("described", "command", "expected"),
    [
        (
            tool("Read", "file_path", "offset", "limit"),
            "sed -n 10,20p a",
            {"file_path": "a", "offset": 10, "limit": 11},
        ),
        (tool("Read", "file_path", "offset", "limit"), "head -5 a", {"file_path": "a", "limit": 5}),
        (
            tool("fs__read_text_file", "path", "head", "tail"),
            "tail -n 5 a",
            {"path": "a", "tail": 5},
        ),
        (
            tool("fs__read_text_file", "path", "head", "tail"),
            "head -n 5 a",
            {"path": "a", "head": 5},
        ),
        (tool("view_file", "absolutePath"), "cat a", {"absolutePath": "a"}),
        (tool("list_dir", "directory"), "ls src", {"directory": "src"}),
        (tool("Glob", "pattern"), "find src -name x", {"pattern": "src/**/x"}),
        (
            tool("search_files", "path", "pattern"),
            "find src -name x",
            {"path": "src", "pattern": "**/x"},
        ),
        (
            tool("ripgrep_search", "query", "directory", "caseSensitive"),
            "rg -i x a",
            {"query": "x", "directory": "a", "caseSensitive": False},
        ),
        (tool("local.files.read", "file"), "cat a", {"file": "a"}),
    ],
)
@pytest.mark.covers("openboa-alternative-for-tail")
def test_arguments_take_the_names_that_the_tool_has(
    described: dict[str, Any], command: str, expected: dict[str, Any]
) -> None:
    assert alternatives(command, {described["name"]: described}) == [(described["name"], expected)]


@pytest.mark.parametrize(
    "described",
    [
        tool("read", "path", access=("file_read", "file_write")),
        tool("read", "path", access=("file_read", "network")),
        tool("read", "path", access=(), kind="custom"),
        tool("read", "path", kind="shell_command"),
        tool("read", "url"),
        tool("read_web_page", "path"),
        tool("write_file", "path"),
        {"name": "read"},
        {"name": "read", "kind": None, "access_kinds": 3, "argument_names": "path"},
    ],
)
def test_a_tool_that_does_more_or_other_things_is_not_offered(described: dict[str, Any]) -> None:
    assert alternatives("cat a", {described["name"]: described}) == []


@pytest.mark.covers("openboa-alternative-in-reading-shell")
def test_a_reading_command_may_go_to_a_shell_that_can_only_read() -> None:
    weak = tool("bash", "command", kind="shell_command", access=("file_read",))
    assert alternatives("du -sh .", {**TOOLS, "bash": weak}) == [("bash", {"command": "du -sh ."})]
    assert alternatives("du -sh .") == []


def test_the_names_of_the_flag_that_a_search_needs_must_exist() -> None:
    plain = {"grep": tool("grep", "pattern", "path")}
    assert alternatives("grep -i x a", plain) == []
    assert alternatives("grep -n x a", plain) == [("grep", {"pattern": "x", "path": "a"})]


@settings(max_examples=200, deadline=2000)
@given(
    st.text(max_size=40),
    st.dictionaries(
        st.text(max_size=5),
        st.dictionaries(
            st.text(max_size=14),
            st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=5)),
        ),
        max_size=3,
    ),
)
def test_it_never_raises(command: str, tools: dict[str, dict[str, Any]]) -> None:
    assert isinstance(alternatives(command, tools), list)


def test_a_malformed_fact_has_no_alternatives() -> None:
    assert shell_alternatives({}, available=TOOLS) == []  # type: ignore[typeddict-item]
    assert (
        shell_alternatives(shell_fact("cat a", argument="/command"), available={"read": None}) == []
    )  # type: ignore[dict-item]
