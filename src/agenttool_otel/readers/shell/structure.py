"""The structure of a command line, as bash's grammar gives it to the words that were read.

The grammar's tree shows which words belong together. It is not believed where the words are
concerned: it has to use each token of the strict check (``tokens``) once and in the order of the
text. Whatever is more than simple commands, joined by ``&& || ; |`` and line ends and grouped by
``( )``, ends the proof with the name of the construct.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agenttool_otel.readers.shell.grammar import LITERAL_KINDS, REDIRECT_KINDS, parse, walk
from agenttool_otel.readers.shell.syntax import Assignment, Redirect, Simple, Unproven, Word
from agenttool_otel.readers.shell.tables import programs
from agenttool_otel.readers.shell.tokens import MAX_COMMANDS, MAX_DEPTH, NEWLINE, Token, scan

if TYPE_CHECKING:
    from tree_sitter import Node

_JOINTS = {";": ";", "&&": "&&", "||": "||", "|": "|", NEWLINE: ";"}
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
# git's HEAD^{tree} and stash@{0} are read; the grammar has kinds of its own for their braces
_WORD_KINDS = LITERAL_KINDS | {"string_content", "brace_expression"}
_JOINED = frozenset({"program", "list", "pipeline", "redirected_statement"})
_TAKEN_BEFORE = frozenset({"comment", "file_descriptor", "heredoc_body", "heredoc_end"})
# how deep lists may nest in the tree: "a && b && c" is a list in a list
_MAX_NESTING = 4 * (MAX_COMMANDS + MAX_DEPTH)
_CONSTRUCTS = {
    "if_statement": "keyword",
    "for_statement": "keyword",
    "c_style_for_statement": "keyword",
    "while_statement": "keyword",
    "case_statement": "keyword",
    "compound_statement": "keyword",
    "function_definition": "function",
    "variable_assignment": "assignment",
    "variable_assignments": "assignment",
}


def read(text: str) -> list[Simple]:
    """Read a command line into its simple commands, in the order of their text.

    Raises:
        Unproven: the line holds something else, or some shell may read it otherwise.
    """
    tokens = scan(text)
    root = parse(text)
    if root.has_error:
        raise Unproven("syntax")
    structure = _Structure(text, tokens)
    structure.statement(root)
    structure.end()
    if not structure.commands:
        raise Unproven("empty")
    return structure.commands


class _Structure:
    """Puts tokens into the commands of the tree."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._index = 0
        self._joint = ""
        self._group: tuple[int, ...] = ()
        self._groups = 0
        self._nesting = 0
        self.commands: list[Simple] = []
        self._command: Simple | None = None
        """The command that a redirection belongs to: behind ``)`` the first one of the group."""
        self._open = False
        """Words may be added to that command."""
        self._separated = True
        """A command may begin: an operator or a line end stands before it."""

    def statement(self, node: Node) -> None:
        """Read a statement, or an operator between statements."""
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise Unproven("too_deep")
        kind = node.type
        if kind in _JOINED:
            for child in node.children:
                self.statement(child)
        elif kind == "command":
            self._simple(node)
        elif kind == "test_command":
            self._test(node)
        elif kind == "subshell":
            self._subshell(node)
        elif kind == "negated_command":
            self._negated(node)
        elif kind in REDIRECT_KINDS:
            self._redirect(node)
        elif not node.is_named:
            self._operator(node)
        elif kind not in _TAKEN_BEFORE:
            raise Unproven(_CONSTRUCTS.get(kind, kind))
        self._nesting -= 1

    def end(self) -> None:
        """Check that every token belongs to some command."""
        self._skip_newlines()
        self._take_lost_dash(len(self._text))
        if self._index < len(self._tokens):
            raise Unproven("parsers_disagree")

    def _take(self, start: int) -> Token:
        """Take the next token, which has to begin at an offset."""
        self._take_lost_dash(start)
        if self._index >= len(self._tokens) or self._tokens[self._index].start != start:
            raise Unproven("parsers_disagree")
        self._index += 1
        return self._tokens[self._index - 1]

    def _take_lost_dash(self, start: int) -> None:
        # python - 2>&1: the grammar has no node for the dash
        if not self._open or self._command is None or self._index >= len(self._tokens):
            return
        token = self._tokens[self._index]
        if token.word is not None and token.text == "-" and token.start < start:
            self._command.words.append(token.word)
            self._index += 1

    def _skip_newlines(self) -> None:
        while self._index < len(self._tokens) and self._tokens[self._index].text == NEWLINE:
            if self._tokens[self._index].word is not None:
                return  # a quoted line end is a word
            self._index += 1
            self._command = None
            self._open = False
            self._separated = True
            if self._joint not in ("&&", "||", "|"):
                self._joint = ";"

    def _begin(self) -> Simple:
        """Begin a command."""
        if not self._separated:
            raise Unproven("parsers_disagree")
        if len(self.commands) >= MAX_COMMANDS:
            raise Unproven("too_many_commands")
        command = Simple(joint=self._joint, group=self._group)
        self.commands.append(command)
        self._command = command
        self._open = True
        self._separated = False
        self._joint = ";"
        return command

    def _operator(self, node: Node) -> None:
        if node.type == NEWLINE:
            self._skip_newlines()
            return
        joint = _JOINTS.get(node.type)
        if joint is None:
            raise Unproven("syntax")
        token = self._take(node.start_byte)
        if token.text != node.type or token.word is not None:
            raise Unproven("parsers_disagree")
        self._joint = joint
        self._command = None
        self._open = False
        self._separated = True

    def _subshell(self, node: Node) -> None:
        self._skip_newlines()
        outer, first = self._group, len(self.commands)
        self._groups += 1
        for child in node.children:
            if child.type == "(":
                if not self._separated:
                    raise Unproven("parsers_disagree")
                self._parenthesis(child)
                self._group = (*outer, self._groups)
            elif child.type == ")":
                self._skip_newlines()
                self._parenthesis(child)
            else:
                self.statement(child)
        if len(self.commands) == first:
            raise Unproven("empty")
        self._group = outer
        self._command = self.commands[first]
        self._open = self._separated = False

    def _parenthesis(self, node: Node) -> None:
        token = self._take(node.start_byte)
        if token.text != node.type or token.word is not None:
            raise Unproven("parsers_disagree")

    def _negated(self, node: Node) -> None:
        """Read ``! grep -q x a.py``, which only turns the status round."""
        self._skip_newlines()
        for child in node.children:
            if child.type == "!":
                token = self._take(child.start_byte)
                if token.text != "!" or child is not node.children[0]:
                    raise Unproven("negation")
            else:
                self.statement(child)

    def _simple(self, node: Node) -> None:
        self._skip_newlines()
        command = self._begin()
        for child in node.children:
            if child.type == "variable_assignment":
                self._assignment(command, child)
            elif child.type in REDIRECT_KINDS:
                self._redirect(child)
            else:
                self._argument(child)
        self._check_name(command)

    def _check_name(self, command: Simple) -> None:
        if not command.words:
            raise Unproven("assignment")
        first = command.words[0]
        # read sets a variable, which is not followed
        if not first.quoted and first.text in {*programs()["shell"]["keywords"], "read"}:
            raise Unproven("keyword")

    def _assignment(self, command: Simple, node: Node) -> None:
        token = self._take(node.start_byte)
        name = _ASSIGNMENT.match(self._text, token.start)
        if name is None or token.word is None or command.words:
            raise Unproven("assignment")
        if token.word.end != node.end_byte:
            raise Unproven("parsers_disagree")
        command.assignments.append(Assignment(name[1], token.word.text))

    def _argument(self, node: Node) -> None:
        if self._command is None or not self._open:
            raise Unproven("parsers_disagree")
        self._command.words.append(self._word(node))

    def _word(self, node: Node) -> Word:
        """Take the word of a node, which nothing but literal nodes may be part of."""
        word = self._take(node.start_byte).word
        if word is None or word.end != node.end_byte:
            raise Unproven("parsers_disagree")
        kinds = {inner.type for inner in walk(node)} - {"command_name"}
        if not kinds <= _WORD_KINDS:
            raise Unproven("parsers_disagree")
        return word

    def _test(self, node: Node) -> None:
        """Read ``[ -f a.py ]``, whose words are all that stands in it."""
        self._skip_newlines()
        command = self._begin()
        while self._index < len(self._tokens):
            token = self._tokens[self._index]
            if token.start >= node.end_byte:
                break
            if token.word is None:
                raise Unproven("test")
            command.words.append(token.word)
            self._index += 1
        if not command.words or command.words[0].start != node.start_byte:
            raise Unproven("parsers_disagree")
        if command.words[-1].end != node.end_byte:
            raise Unproven("parsers_disagree")

    def _redirect(self, node: Node) -> None:
        self._skip_newlines()
        if self._command is None:
            self._begin()  # "> x" alone makes a file
        command = self._command
        token = self._take(node.start_byte)
        if token.fd is None or command is None:
            raise Unproven("parsers_disagree")
        target = self._take_target()
        redirect = Redirect(token.fd, token.text[len(token.fd) :], target)
        # the input of a group would be that of its first command alone
        if redirect.is_input and not self._open:
            raise Unproven("redirection")
        command.redirects.append(redirect)
        for child in node.children:
            if child.start_byte > target.start:
                self._behind_target(child)

    def _take_target(self) -> Word:
        if self._index >= len(self._tokens):
            raise Unproven("parsers_disagree")
        target = self._take(self._tokens[self._index].start).word
        if target is None:
            raise Unproven("parsers_disagree")
        return target

    def _behind_target(self, node: Node) -> None:
        """Read what stands behind the target but within the redirection's node.

        ``> out a b`` has more words, ``cat <<EOF | sort`` the rest of the line.
        """
        if node.type in LITERAL_KINDS:
            self._argument(node)
        else:
            self.statement(node)
