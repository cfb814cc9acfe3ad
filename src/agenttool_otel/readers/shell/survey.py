"""The commands of a line that is not proven, wherever they stand: for the facts that warn."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenttool_otel.readers.shell.braces import BRACE, alternatives
from agenttool_otel.readers.shell.grammar import LITERAL_KINDS, REDIRECT_KINDS, parse, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_FOUND = 200
_MAX_SURVEY = 4096  # error recovery takes quadratic time on hostile text

_COMMAND_KINDS = frozenset({"command", "test_command", "declaration_command", "unset_command"})
_SUBSTITUTION_KINDS = frozenset({"command_substitution", "process_substitution"})
_LITERAL_PARTS = LITERAL_KINDS | {"string_content"}

_SINGLE_QUOTED = r"'([^']*)'?"
_DOUBLE_QUOTED = r"\"((?:[^\"\\]|\\.)*)\"?"
_ESCAPED = r"\\(.)"
_QUOTED = re.compile(f"{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|{_ESCAPED}", re.DOTALL)
_SPECIAL = frozenset("'\"\\$`")
_ESCAPED_IN_DOUBLE_QUOTES = re.compile(r'\\(["\\$`])')


@dataclass(slots=True)
class Found:
    """One command of a line that is not proven."""

    words: list[str] = field(default_factory=list)
    literal: list[bool] = field(default_factory=list)
    """Whether each word holds nothing to expand."""
    assignments: list[str] = field(default_factory=list)
    """Names of the variables that it sets."""
    redirects: list[tuple[str, str]] = field(default_factory=list)
    """Operators and targets."""
    input: list[int] = field(default_factory=list)
    """Positions of the commands in front of it in its pipeline."""
    text: list[int] = field(default_factory=list)
    """Positions of the commands whose output is among its words."""


def survey(text: str, limit: int = _MAX_SURVEY) -> list[Found]:
    """List the commands of a line, also those inside other constructs.

    Args:
        text: the line.
        limit: so many characters are read.
    """
    surveyor = _Surveyor(text[:limit])
    surveyor.run()
    return surveyor.found


class _Surveyor:
    """Lists the commands of one line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.found: list[Found] = []
        self._placed: list[tuple[Node, int]] = []
        """The nodes of commands, and their positions in ``found``."""

    def run(self) -> None:
        for node in walk(parse(self._text)):
            if len(self.found) >= _MAX_FOUND:
                break
            if node.type in _COMMAND_KINDS:
                self._add_command(node)
            elif node.type == "file_redirect":
                self._add_redirect(node)
            elif node.type == "variable_assignment" and not _is_of_command(node):
                self.found.append(Found(assignments=[self._name(node)]))
        for node, position in self._placed:
            self._connect(node, position)

    def _slice(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte]

    def _name(self, assignment: Node) -> str:
        return self._slice(assignment).partition("=")[0]

    def _add_command(self, node: Node) -> None:
        command = self._command(node)
        if command.words or command.assignments:
            self._placed.append((node, len(self.found)))
            self.found.append(command)

    def _add_redirect(self, node: Node) -> None:
        redirect = self._redirect(node)
        if not self.found:
            self.found.append(Found(redirects=[redirect]))
            return
        owner = len(self.found) - 1
        for other, position in self._placed:
            if other.start_byte <= node.start_byte:
                owner = position
        self.found[owner].redirects.append(redirect)

    def _redirect(self, node: Node) -> tuple[str, str]:
        operators = [child.type for child in node.children if not child.is_named]
        operator = operators[0] if operators else ">"
        target = node.child_by_field_name("destination")
        if target is None:
            return operator, ""
        return operator, _unquote(self._slice(target))

    def _command(self, node: Node) -> Found:
        if node.type != "command":
            # [[ -f x ]], export A=1
            program = self._slice(node).split(None, 1)[0]
            return Found(words=[program], literal=[True])
        command = Found()
        for child in node.named_children:
            if child.type == "variable_assignment":
                name = self._name(child)
                command.assignments.append(name)
            elif child.type not in REDIRECT_KINDS and child.type != "comment":
                self._add_words(child, command)
        return command

    def _add_words(self, node: Node, command: Found) -> None:
        text, literal = self._word(node)
        words = [text]
        # find . {-delete,-print}
        if self._has_braces(node):
            words = alternatives(text)
        for word in words:
            command.words.append(word)
            command.literal.append(literal)

    def _has_braces(self, node: Node) -> bool:
        """Whether bash makes several words of one; what is quoted is not looked into."""
        raw = self._slice(node)
        if BRACE.search(raw) is None:
            return False
        return _SPECIAL.isdisjoint(raw)

    def _word(self, node: Node) -> tuple[str, bool]:
        """Return a word, and whether it holds nothing to expand."""
        raw = self._slice(node)
        inner = node
        if node.type == "command_name" and node.named_children:
            inner = node.named_children[0]
        if inner.type not in LITERAL_KINDS:
            return raw, False
        kinds = {part.type for part in walk(inner)}
        if not kinds <= _LITERAL_PARTS:
            return raw, False
        return _unquote(raw), True

    def _connect(self, node: Node, position: int) -> None:
        """Note whose output a command gets, and whose words its own output is among."""
        above = node.parent
        while above is not None:
            if above.type == "pipeline":
                self._note_input(above, node, position)
            elif above.type in _SUBSTITUTION_KINDS:
                self._note_text(above, position)
            above = above.parent

    def _note_input(self, pipeline: Node, node: Node, position: int) -> None:
        for other, fed_by in self._placed:
            in_front = other.end_byte <= node.start_byte
            if in_front and pipeline.start_byte <= other.start_byte:
                self.found[position].input.append(fed_by)

    def _note_text(self, substitution: Node, position: int) -> None:
        owner = _command_around(substitution)
        for other, reader in self._placed:
            if other == owner:
                self.found[reader].text.append(position)


def _is_of_command(assignment: Node) -> bool:
    return assignment.parent is not None and assignment.parent.type == "command"


def _command_around(node: Node) -> Node | None:
    above = node.parent
    while above is not None and above.type != "command":
        above = above.parent
    return above


def _unquote(raw: str) -> str:
    """Remove the quotes of a word without expansions."""
    return _QUOTED.sub(_plain, raw.replace("\\\n", ""))


def _plain(match: re.Match[str]) -> str:
    single, double, escaped = match.groups()
    if double is not None:
        return _ESCAPED_IN_DOUBLE_QUOTES.sub(r"\1", double)
    return single or escaped or ""
