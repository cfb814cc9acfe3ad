"""The console approver: shows everything, asks on the terminal, and prints nothing when there is no
terminal.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.display import (
    arguments_text,
    describe_arguments,
    describe_effects,
    describe_suggestion,
    editable_arguments,
    effects_text,
    is_redacted,
    merge_edit,
    parse_edit,
    remaining,
    request_details,
    request_facts,
    visible,
)
from agenttool_otel.approvals.grants import acceptable
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, StoredCall
from agenttool_otel.errors import ApprovalError
from agenttool_otel.names import AnswerWay
from agenttool_otel.records.base import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType


def local_identity() -> str:
    """Return ``user:<login name>`` of the user who runs this process."""
    try:
        return f"user:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return f"user:uid-{os.getuid()}" if hasattr(os, "getuid") else "user:unknown"


class ConsoleApprover:
    """Asks the person at the terminal."""

    def __init__(
        self,
        *,
        answered_by: str = "",
        roles: tuple[str, ...] = (),
        console: Console | None = None,
        stored_call: Callable[[str], StoredCall] | None = None,
    ) -> None:
        self._answered_by = answered_by or local_identity()
        self._roles = tuple(roles)
        self._console = console
        self._stored_call = stored_call

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Show the request and read the answer; ``None`` without a terminal, at its end, or for
        "later".
        """
        console = self._console or _terminal()
        if console is None or not console.is_terminal or not sys.stdin.isatty():
            return None
        console.print(request_panel(request))
        can_edit = self._can_edit(request)
        grants = _acceptable_numbers(request)
        choices = ["y = yes", "n = no"]
        if can_edit:
            choices.append("e = edit")
        choices += [f"r{number} = yes, and remember {number}" for number in grants]
        choices.append("l = later")
        try:
            while True:
                console.print(", ".join(choices), style="dim", markup=False, highlight=False)
                word = console.input("Run this? ").strip().lower()
                if word in {"l", "later"}:
                    return None
                if word in {"e", "edit"} and can_edit:
                    answer = self._edited(request, console)
                else:
                    answer = self._answer_of(word, grants, console)
                if answer is not None:
                    return answer
        except EOFError:
            return None

    def _can_edit(self, request: ApprovalRequest) -> bool:
        if request.effects is not None:
            return False  # the body has run with these arguments
        return not is_redacted(request) or self._stored_call is not None

    def _edited(self, request: ApprovalRequest, console: Console) -> ApprovalAnswer | None:
        edited = self._edit(request, console)
        return None if edited is None else self._answer(approved=True, edited_input=edited)

    def _answer_of(self, word: str, grants: list[int], console: Console) -> ApprovalAnswer | None:
        """Return the answer that a word gives; ``None`` where it is no choice."""
        if word in {"y", "yes"}:
            return self._answer(approved=True)
        if word in {"n", "no"}:
            return self._answer(approved=False, reason=console.input("Why not? ").strip())
        number = word[1:]
        if word[:1] == "r" and number.isdecimal() and int(number) in grants:
            return self._answer(approved=True, remember=int(number) - 1)
        console.print("Please answer with one of:", style="yellow")
        return None

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """As ``ask``, in a worker thread."""
        return await asyncio.to_thread(self.ask, request)

    def _answer(self, *, approved: bool, **values: Any) -> ApprovalAnswer:
        return ApprovalAnswer(
            approved=approved,
            answered_by=self._answered_by,
            roles=self._roles,
            way=AnswerWay.TERMINAL,
            **values,
        )

    def _edit(self, request: ApprovalRequest, console: Console) -> dict[str, Any] | None:
        try:
            if (text := edit_in_editor(editable_arguments(request))) is None:
                console.print(
                    "Type the new arguments as JSON on one line (empty: keep asking).", style="dim"
                )
                text = console.input("JSON: ")
                if not text.strip():
                    return None
            edited = parse_edit(text)
            original = request.arguments_preview
            if self._stored_call is not None:
                original = self._stored_call(request.request_id).original_arguments
            edited = merge_edit(request.arguments_preview, edited, original)
        except ApprovalError as error:
            console.print(str(error), style="red", markup=False, highlight=False)
            return None
        console.print(_block("Runs instead", arguments_text(edited), ""))
        return (
            edited if console.input("Run it so? (y/n) ").strip().lower() in {"y", "yes"} else None
        )


def _acceptable_numbers(request: ApprovalRequest) -> list[int]:
    """Return the numbers, from 1, of the suggested updates that can be accepted."""
    numbered = enumerate(request.suggested_updates, 1)
    return [number for number, suggestion in numbered if acceptable(request, suggestion)]


def edit_in_editor(text: str) -> str | None:
    """Let the person edit a text in ``$VISUAL`` or ``$EDITOR``; ``None`` when neither is set or it
    failed.
    """
    import shlex

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return None
    with tempfile.TemporaryDirectory(prefix="agenttool-") as folder:
        path = Path(folder) / "arguments.json"
        path.touch(0o600)
        path.write_text(text, "utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603 - the person's own editor
            return path.read_text("utf-8") if done.returncode == 0 else None
        except (OSError, ValueError):
            return None


def request_panel(request: ApprovalRequest) -> RenderableType:
    """Return everything that a person needs for the answer, as a Rich renderable without markup
    from the request.
    """
    from rich.console import Group
    from rich.panel import Panel

    state = [
        ("Request", request.request_id),
        ("Status", request.status.value),
        ("Outcome", request.outcome.value if request.outcome else ""),
        ("Expires in", remaining(request, utc_now())),
    ]
    parts: list[RenderableType] = []
    if request.effects is not None:
        parts.append(_block("Would change", effects_text(request), describe_effects(request)))
    parts += [
        _rows(request_facts(request)),
        _block("Arguments", arguments_text(request.arguments_preview), describe_arguments(request)),
    ]
    if request.alternatives:
        parts.append(
            _block("Safer instead", "\n".join(map(arguments_text, request.alternatives)), "")
        )
    for number, suggestion in enumerate(request.suggested_updates, 1):
        parts.append(
            _block(
                f"Remember {number}", arguments_text(suggestion), describe_suggestion(suggestion)
            )
        )
    parts.append(_rows([*state, *request_details(request)]))
    return Panel(Group(*parts), title="Approval needed", title_align="left", border_style="yellow")


def _rows(rows: list[tuple[str, str]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value:
            table.add_row(Text(visible(name)), Text(visible(value)))
    return table


def _block(title: str, body: str, note: str) -> RenderableType:
    from rich.panel import Panel
    from rich.text import Text

    return Panel(
        Text(body, overflow="fold"),
        title=title,
        subtitle=Text(note) if note else None,
        title_align="left",
    )


def _terminal() -> Console | None:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)
