"""Whether a line runs what it fetches: a download piped into an interpreter, given to it as text, or run as a file."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field

from agenttool_otel.facts.shell.effects import unwrapped
from agenttool_otel.facts.shell.guard import Simple
from agenttool_otel.facts.shell.tables import effects

_OUTPUT_OPTIONS = ("-o", "-O", "--output", "--output-document")
_CODE_OPTIONS = ("-c", "-e", "-E", "-m", "-p", "-r")


@dataclass(slots=True)
class Step:
    """One command, and which others' output reaches it."""

    words: list[str]
    targets: list[str] = field(default_factory=list)  # files that its output is redirected to
    input: list[int] = field(default_factory=list)  # positions of the commands whose output is its input
    text: list[int] = field(default_factory=list)  # positions of the commands whose output is among its words


def steps_of(commands: Sequence[Simple]) -> list[Step]:
    """The commands of a line that was read, with what flows between them."""
    steps: list[Step] = []
    pipelines: dict[tuple[int, ...], list[int]] = {}  # by subshell: what feeds the command at hand
    for position, command in enumerate(commands):
        step = Step(
            [word.text for word in command.words], [r.target.text for r in command.redirects if ">" in r.operator]
        )
        outer = pipelines.get(command.group[:-1], []) if command.group else []
        previous = pipelines.get(command.group)
        if command.joint == "|" and previous is not None:
            step.input = list(previous)
        elif command.group:
            step.input = list(outer) if command.joint != "<(" else []
        pipelines[command.group] = [*step.input, position]
        for size in range(len(command.group)):
            pipelines.setdefault(command.group[:size], []).append(position)
        owner = next((i for i in range(position - 1, -1, -1) if len(commands[i].group) < len(command.group)), None)
        if command.group and owner is not None and any(word.substitution for word in commands[owner].words):
            steps[owner].text.append(position)
        steps.append(step)
    return steps


def fetches(text: str) -> bool:
    """Whether a line may hold a program that fetches; a quick look that spares most lines the rest."""
    return any(name in text for name in effects().fetchers)


def runs_download(steps: Sequence[Step]) -> bool:
    """Whether some command runs what another one fetched."""
    fetchers = {i for i, step in enumerate(steps) if _program(step.words) in effects().fetchers}
    if not fetchers:
        return False
    files = {posixpath.basename(name) for i in fetchers for name in _outputs(steps[i])}
    for step in steps:
        words = unwrapped(step.words)
        name = _program(words)
        if files and words and "/" in words[0] and posixpath.basename(words[0]) in files:
            return True
        if name not in effects().interpreters:
            continue
        if fetchers.intersection(step.text):
            return True
        script = _script(name, words[1:])
        if script is None and fetchers.intersection(step.input):
            return True
        if script and posixpath.basename(script) in files:
            return True
    return False


def _program(words: Sequence[str]) -> str:
    words = unwrapped(list(words))
    return posixpath.basename(words[0]) if words else ""


def _script(name: str, words: Sequence[str]) -> str | None:
    """The script file of an interpreter: ``None`` when it reads its input, empty when its code is among the words."""
    for word in words:
        if word in ("-", "-s", "/dev/stdin"):
            return None
        if name in effects().shells:
            has_code = word.startswith("-") and not word.startswith("--") and "c" in word
        else:
            has_code = word.startswith(_CODE_OPTIONS)
        if has_code:
            return ""
        if not word.startswith("-"):
            return word
    return None


def _outputs(step: Step) -> list[str]:
    """The files that a fetching command writes."""
    names = list(step.targets)
    words = step.words
    for index, word in enumerate(words[1:], start=1):
        if word in _OUTPUT_OPTIONS and index + 1 < len(words):
            names.append(words[index + 1])
        elif word.startswith(("--output=", "--output-document=")):
            names.append(word.partition("=")[2])
        elif word[:2] in ("-o", "-O") and len(word) > 2:
            names.append(word[2:])
        if "/" in word and not word.startswith("-"):
            names.append(word.partition("?")[0])  # named after the URL
    return [name for name in names if posixpath.basename(name)]
