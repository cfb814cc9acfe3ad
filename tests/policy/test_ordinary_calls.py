"""Forty ordinary calls of a coding agent and twenty of a support desk's: how many are asked about,
and why these.
"""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import Governor, agent_context

CORPUS = Path(__file__).parents[1] / "facts" / "corpus" / "shell.jsonl"
READS = """git status|git diff|git log --oneline -5|ls -la|cat src/app.py|grep -rn TODO src|find . -name '*.py'|pwd
wc -l src/app.py|head -20 README.md|cd src && ls|git status && git diff \\| head -50"""
RUNS_THE_CHECKOUT = """pytest|pytest -q test_a.py|python -m pytest -x|npm test|npm run build|make test|ruff check .
mypy src|cargo test|go test ./..."""
"""Each runs code or settings of the checkout: a conftest.py, a plugin, a script of package.json."""
RUNS_CODE = "python -c 'print(1)'"
WRITES = """git add -A|git commit -m 'fix'|git checkout -b feature|sed -i 's/a/b/' src/app.py|mkdir -p build
mv notes.txt n.txt|echo hi > out.txt"""
REACHES_OUT = "pip install requests|npm install|git push origin feature|rm -rf build|curl -s https://docs.python.org/3/"
SHELL: dict[str, Any] = {
    "command_args": ["command"],
    "tool_kind": "shell_command",
    "access_kinds": ["file_read", "file_write", "code_execution"],
    "read_only": "classifier:command_read_only",
    "destructive": "classifier:command_destructive",
}
FILES: dict[str, Any] = {
    "tool_kind": "file_operation",
    "access_kinds": ["file_read"],
    "read_only": True,
}
LISTED = [
    "pytest",
    "python -m pytest",
    "npm test",
    "npm run build",
    "make test",
    "ruff check",
    "mypy",
    "cargo test",
]
COMMANDS = {"shell": {"commands": {"allow": [words.split() for words in [*LISTED, "go test"]]}}}


def lines(text: str) -> list[str]:
    """The commands of a text, one by one."""
    return [
        part.replace("\0", "|") for part in text.replace("\\|", "\0").replace("\n", "|").split("|")
    ]


@contextmanager
def checkout(folder: Path) -> Iterator[None]:
    (folder / "src").mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for name in ("src/app.py", "README.md", "notes.txt", "test_a.py"):
        (folder / name).write_text("x", "utf-8")
    with agent_context(actor="agent:dev", session_id="s", roots=[str(folder)], cwd=str(folder)):
        yield


def coding_calls(governor: Governor) -> dict[str, str]:
    """What is decided about each of the forty calls."""

    def run(command: str) -> str:
        """Run a shell command."""
        raise AssertionError("ran")

    def file(path: str, text: str = "", pattern: str = "") -> str:
        """Read, write or search."""
        raise AssertionError("ran")

    def fetch(url: str) -> str:
        """Fetch a page."""
        raise AssertionError("ran")

    def python(code: str) -> str:
        """Run Python."""
        raise AssertionError("ran")

    both = {
        **FILES,
        "access_kinds": ["file_read", "file_write"],
        "read_only": False,
        "destructive": False,
    }
    browse = {
        "tool_kind": "browser_action",
        "access_kinds": ["network"],
        "read_only": True,
        "open_world": True,
    }
    code = {"tool_kind": "code_execution", "access_kinds": ["code_execution"], "read_only": False}
    shell = governor.govern(run, **SHELL)
    others = [
        (governor.govern(file, name="read_file", **FILES), {"path": "src/app.py"}),
        (governor.govern(file, name="write_file", **both), {"path": "src/new.py", "text": "x"}),
        (governor.govern(file, name="grep", **FILES), {"pattern": "def \\w+", "path": "src"}),
        (governor.govern(fetch, **browse), {"url": "https://docs.python.org/3/library/os.html"}),
        (governor.govern(python, **code), {"code": "print(2+2)"}),
    ]
    commands = [
        line
        for text in (READS, RUNS_THE_CHECKOUT, RUNS_CODE, WRITES, REACHES_OUT)
        for line in lines(text)
    ]
    decided = {line: shell.tool.check(command=line).behavior.value for line in commands}
    decided |= {
        tool.tool.spec.name: tool.tool.check(**given).behavior.value for tool, given in others
    }
    assert len(decided) == 40
    return decided


BELIEVED: dict[str, Any] = {"shell": {"sandbox_modes": {"default": True}}}
ALWAYS = {*lines(REACHES_OUT), "python"}
WRITTEN = {*lines(WRITES), "write_file"}
RUN = {*lines(RUNS_THE_CHECKOUT), RUNS_CODE}


@pytest.mark.parametrize(
    ("settings", "asked", "number"),
    [
        # nothing is stated: whatever writes, reaches out or runs what lies in the checkout
        ({}, ALWAYS | WRITTEN | RUN, 25),
        ({"preset": "coding"}, ALWAYS | RUN, 17),
        (BELIEVED, ALWAYS | WRITTEN, 14),
        (COMMANDS, ALWAYS | WRITTEN | {RUNS_CODE}, 15),
        ({"preset": "coding", **BELIEVED}, ALWAYS, 6),
        ({"preset": "coding", **COMMANDS}, ALWAYS | {RUNS_CODE}, 7),
        ({"preset": "strict", **BELIEVED}, None, 0),
    ],
)
def test_a_coding_agent_is_asked_about_these_of_forty_calls(
    settings: dict[str, Any],
    asked: set[str] | None,
    number: int,
    tmp_path: Path,
) -> None:
    governor = Governor(policy_data={"agenttool": {"settings": settings}})
    with checkout(tmp_path):
        decided = coding_calls(governor)
    if asked is None:  # a believed sandbox loosens nothing in a strict preset
        assert not [name for name in ALWAYS | WRITTEN | RUN if decided[name] == "allow"]
        return
    assert {name for name, behavior in decided.items() if behavior == "ask"} == asked
    assert set(decided.values()) == {"allow", "ask"}
    assert len(asked) == number


@pytest.mark.parametrize("settings", [BELIEVED, {"preset": "coding", **BELIEVED}])
def test_a_sandbox_agrees_to_no_program_out_of_nowhere(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    governor = Governor(policy_data={"agenttool": {"settings": settings}})
    run = governor.govern(lambda command: "", name="run", description="x", **SHELL)
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    commands = [row["input"] for row in rows if row.get("class") == "variable"]
    commands += [
        "echo bHM= | base64 -d | sh",
        "rev a | bash -s",
        "LD_PRELOAD=./x.so pytest",
        "X='cat ~/.netrc' pytest",
    ]
    with checkout(tmp_path):
        assert [
            command for command in commands if run.tool.check(command=command).behavior == "allow"
        ] == []
        for command in ("python -m pytest", "PYTHONPATH=src pytest", "bash run.sh"):
            assert run.tool.check(command=command).behavior == "allow", command


@pytest.mark.slow
def test_a_believed_sandbox_lifts_no_denial_and_no_secret(tmp_path: Path) -> None:
    believing = Governor(policy_data={"agenttool": {"settings": BELIEVED}})

    def run(command: str) -> str:
        """Run a shell command."""
        raise AssertionError("ran")

    plain = Governor().govern(run, **SHELL)
    boxed = believing.govern(run, **SHELL)
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    with checkout(tmp_path):
        for row in rows:
            before, after = (
                tool.tool.check(command=row["input"]).behavior for tool in (plain, boxed)
            )
            if before == "deny" or row["expected"] == "read_only_sensitive":
                assert after == before, row["input"]


@pytest.mark.parametrize("settings", [{}, {"preset": "coding"}])
def test_a_support_desk_is_asked_about_eight_of_twenty(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    governor = Governor(policy_data={"agenttool": {"settings": settings}})

    def tool(function: Any, name: str, **facts: Any) -> Any:
        return governor.govern(function, name=name, description="x", **facts)

    def names(call: Any) -> list[str]:
        return list(inspect.signature(call).parameters)

    reads: dict[str, Any] = {"read_only": True, "access_kinds": []}
    fetches: dict[str, Any] = {"read_only": True, "access_kinds": ["network"]}
    writes: dict[str, Any] = {"read_only": False, "access_kinds": []}
    remote: dict[str, Any] = {"read_only": False, "write_effects": ["remote_mutation"]}
    order = tool(lambda order_id: "", "lookup_order", **fetches)
    customer = tool(lambda email: "", "lookup_customer", **reads)
    articles = tool(lambda query: "", "search_kb", tool_kind="retrieval", **reads)
    track = tool(lambda carrier, tracking_url: "", "track", **fetches)
    sql = tool(lambda query: "", "sql", tool_kind="retrieval", sql_args=["query"], **fetches)
    refund = tool(
        lambda order_id, amount: "", "refund", access_kinds=["payment"], risk_level="high", **remote
    )
    send = tool(
        lambda to, subject, body: "", "send_email", access_kinds=["external_send"], **remote
    )
    note = tool(
        lambda ticket_id, note: "", "add_note", write_effects=["local_persistent"], **writes
    )
    close = tool(lambda ticket_id: "", "close_ticket", access_kinds=[], **remote)
    draft = tool(lambda ticket_id, text: "", "draft_reply", write_effects=["local_draft"], **writes)
    allowed = {
        order: ["A-1001", "https://shop.example.com/o/1", "A-1002"],
        customer: ["ann@example.com", "bob@example.com"],
        articles: ["how do I return shoes?", "and/or return policy 14/30 days", "/refund policy"],
        sql: [
            "SELECT * FROM orders WHERE id=1",
            "SELECT count(*) FROM orders JOIN c USING(id)",
            "WITH t AS (SELECT 1) SELECT * FROM t",
        ],
        track: [("dhl", "https://dhl.com/t/1")],
    }
    asked = {
        refund: [("A-1", 5.0), ("A-1", 5000.0)],
        send: [("ann@example.com", "Your order", "Hello"), ("boss@corp.example", "x", "y")],
        note: [("T1", "called")],
        close: ["T1"],
        draft: [("T1", "Hi")],
        sql: ["UPDATE orders SET s=1 WHERE id=1"],
    }
    with checkout(tmp_path):
        for behavior, calls, number in (("allow", allowed, 12), ("ask", asked, 8)):
            made = [
                call.tool.check(
                    dict(
                        zip(
                            names(call),
                            given if isinstance(given, tuple) else (given,),
                            strict=True,
                        )
                    )
                )
                for call, givens in calls.items()
                for given in givens
            ]
            assert [answer.behavior.value for answer in made] == [behavior] * number
