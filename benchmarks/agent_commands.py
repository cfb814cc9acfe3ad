"""How often a policy asks about, and denies, the honest commands of a coding agent.

Reads a corpus of commands (JSON lines, plain or gzip, with ``command`` and ``cwd``) and prints for
each preset how many are allowed, asked about and denied before they run, by rule: ``python -m
benchmarks.agent_commands [file] [-v] [--grants]``. The file may be named by
AGENT_COMMANDS, too; else it is looked for beside the repository, and nothing is measured
where it is absent.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, Final

from agenttool_otel import ApprovalAnswer, Governor, ToolDenied, agent_context
from agenttool_otel.approvals.types import ApprovalRequest

_REPOSITORY = Path(__file__).resolve().parents[1]
_BESIDE = _REPOSITORY.parent / "shared" / "corpora" / "agent_commands.jsonl.gz"
DEFAULT = Path(os.environ.get("AGENT_COMMANDS") or _BESIDE)
_EXAMPLES = 3

SHELL: Final[dict[str, Any]] = {
    "namespace": "bench",
    "command_args": ["command"],
    "tool_kind": "shell_command",
    "access_kinds": ["file_read", "file_write", "code_execution"],
    "read_only": "classifier:command_read_only",
    "destructive": "classifier:command_destructive",
}
"""What the author of a shell tool states of it, as options of ``govern``."""


def corpus(path: Path) -> Counter[tuple[str, str]]:
    """The commands with their directories, and how often each was given."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return Counter((row["cwd"], row["command"]) for row in map(json.loads, text.splitlines()))


def decide(commands: Counter[tuple[str, str]], preset: str, held: bool) -> dict[str, Counter[str]]:
    """The answers: behaviour -> rule -> number of commands."""
    tool = governed(preset, held)
    answers: dict[str, Counter[str]] = {"allow": Counter(), "ask": Counter(), "deny": Counter()}
    shown: Counter[str] = Counter()
    for (cwd, command), count in commands.items():
        with agent_context(
            actor="agent:bench", session_id="bench", roots=[cwd], cwd=cwd, interactive=True
        ):
            answer = tool.tool.check(command=command)
        reason = answer.decision.reason if answer.decision else None
        rule = (reason.rule_ref or "") if reason else ""
        answers[answer.behavior.value][rule] += count
        key = f"{answer.behavior.value} {rule}"
        shown[key] += 1
        if "-v" in sys.argv and answer.behavior.value != "allow" and shown[key] <= _EXAMPLES:
            sys.stdout.write(f"    {key}: {command[:160]!r}\n")
    return answers


def asked_with_grants(path: Path, preset: str, held: bool) -> tuple[int, int]:
    """How often people are asked who accept for the session what is offered by facts, and of how
    many commands.
    """

    class Accepts:
        asked = 0

        def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
            Accepts.asked += 1
            offers = [
                n for n, one in enumerate(request.suggested_updates) if one["scope"] == "session"
            ]
            return ApprovalAnswer(
                approved=True, answered_by="user:bench", remember=offers[-1] if offers else None
            )

    tool = governed(preset, held, Accepts())
    content = path.read_bytes()
    rows = [
        json.loads(row)
        for row in (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
    ]
    for row in rows:
        where: dict[str, Any] = {"roots": [row["cwd"]], "cwd": row["cwd"], "interactive": True}
        with (
            agent_context(actor="agent:bench", session_id=row["session"], **where),
            contextlib.suppress(ToolDenied),
        ):
            tool(row["command"])
    return Accepts.asked, len(rows)


def governed(preset: str, held: bool, approver: Any = None) -> Any:
    """A shell tool that runs nothing; its commands can be held, or not."""
    governor = Governor(
        policy_data={"agenttool": {"settings": {"preset": preset}}}, approver=approver
    )
    return shell_tool(governor, held)


def shell_tool(governor: Governor, held: bool) -> Any:
    """A governed shell tool that runs nothing."""

    def run(command: str) -> str:
        """Run a shell command."""
        return ""

    return governor.govern(run, **SHELL, runs_commands=held)


def main() -> int:
    """Print the figures."""
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    path = Path(named[0]) if named else DEFAULT
    if not path.exists():
        sys.stdout.write("the corpus of agent commands is not here\n")
        return 0
    commands = corpus(path)
    total = sum(commands.values())
    for preset, held in product(("balanced", "coding"), (False, True)):
        answers = decide(commands, preset, held)
        shares = "  ".join(
            f"{name} {sum(rules.values()) / total:6.1%}" for name, rules in answers.items()
        )
        how = "rehearsed where that answers all questions" if held else "not held"
        sys.stdout.write(f"{preset}, {how}: {total} commands: {shares}\n")
        for name, rules in answers.items():
            for rule, count in rules.most_common():
                sys.stdout.write(f"  {name:6}{rule:48}{count:6}  {count / total:6.2%}\n")
        if "--grants" in sys.argv:  # some minutes: every command is a whole call
            asked, given = asked_with_grants(path, preset, held)
            sys.stdout.write(
                f"  asked with session grants by facts: {asked} of {given}, {asked / given:.2%}\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
