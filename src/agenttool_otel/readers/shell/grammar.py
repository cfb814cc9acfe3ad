"""The second opinion: tree-sitter-bash, with an allow-list of node kinds.

It has two uses. ``disagreement`` checks that a real bash grammar cuts the line into the very words
and commands that the lexical guard cut it into; any difference ends the proof. ``survey`` lists the
commands of a line that is *not* proven, wherever they stand (substitutions, loops, functions), for
the facts that warn.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agenttool_otel.readers.shell.compounds import Simple
from agenttool_otel.readers.shell.tables import programs

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_MAX_FOUND = 200
_MAX_SURVEY = 4096  # error recovery takes quadratic time on hostile text

_QUOTED = re.compile(r"'([^']*)'?|\"((?:[^\"\\]|\\.)*)\"?|\\(.)", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`])')
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_local = threading.local()


@dataclass(slots=True)
class Found:
    """One command of an unproven line."""

    # positions of the commands in front of it in its pipeline
    input: list[int] = field(default_factory=list)
    # positions of the commands whose output is among its words
    text: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    literal: list[bool] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)


def _parser() -> Parser:
    parser: Parser | None = getattr(_local, "parser", None)
    if parser is None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        parser = _local.parser = Parser(Language(tree_sitter_bash.language()))
    return parser


def _parse(text: str) -> Node:
    """Parses a stand-in of the same length, so that offsets in bytes are offsets in the text.

    The scanner of tree-sitter-bash 0.25 looks characters up in the C library's table of 256 and
    crashes the process on high code points. To the shell they are letters of a word, and so the
    stand-in has a letter there; a control character becomes a blank.
    """
    return _parser().parse(_NOT_ASCII.sub("x", _CONTROL.sub(" ", text)).encode("ascii")).root_node


def _walk(root: Node, *, into_literals: bool = True) -> Iterator[Node]:
    """Yields the named nodes in the order of the text, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if into_literals or node.type not in programs()["bash"]["literal"]:
            stack.extend(reversed(node.named_children))


def disagreement(text: str, commands: list[Simple]) -> str:
    """How the grammar's reading differs from the guard's: empty when it finds the same commands and
    words.
    """
    root, kinds = _parse(text), programs()["bash"]
    words_of = kinds["literal"] | kinds["expanded"]
    if root.has_error:
        return "syntax"
    words: list[tuple[int, int]] = []
    starts: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        kind = node.type
        if kind not in words_of and kind not in kinds["nodes"]:
            return kind
        if kind in ("test_command", "variable_assignment", "heredoc_body"):
            # The guard's table allows only [ op word ] and [ word = word ]; the extent is what can
            # differ.
            if kind == "test_command":
                starts.append(node.start_byte)
                words.append((node.start_byte, node.end_byte))
            stack.extend(_commands_within(node)[0])
            continue
        if kind in ("for_statement", "case_statement"):
            words.append((node.start_byte, node.start_byte + kind.index("_")))
        if kind == "command":
            name = node.child_by_field_name("name")
            starts.append(name.start_byte if name is not None else node.start_byte)
        if kind in words_of:
            if node.named_child_count:
                inner, known = _commands_within(node)
                if not known:
                    return "expansion"
                stack.extend(inner)
            words.append((node.start_byte, node.end_byte))
            continue
        skipped = node.children_by_field_name(
            {"case_item": "value", "function_definition": "name"}.get(kind, "")
        )
        stack.extend(child for child in node.named_children if child not in skipped)
    expected_words: list[tuple[int, int]] = []
    expected_starts: list[int] = []
    overlooked: set[tuple[int, int]] = set()
    for command in commands:
        if command.words:
            first, last = command.words[0], command.words[-1]
            if first.text not in ("for", "case") or first.quoted:
                expected_starts.append(first.start)
            if first.text in ("[", "[["):
                expected_words.append((first.start, last.end))
            else:
                expected_words.extend(
                    (word.start, word.end) for word in command.words if not word.substitution
                )
                # the grammar overlooks a dash in front of "2>&1"
                overlooked.update(
                    (w.start, w.end)
                    for w in command.words
                    if w.text == "-" and w.end == w.start + 1
                )
        targets = [
            r.target for r in command.redirects if r.operator != "<<" and not r.target.substitution
        ]
        expected_words.extend((target.start, target.end) for target in targets)
    # The commands of a loop stand once for each of its words.
    expected = {span for span in expected_words if span not in overlooked or span in words}
    same = sorted(words) == sorted(expected) and sorted(starts) == sorted(set(expected_starts))
    return "" if same else "parsers_disagree"


def _commands_within(node: Node) -> tuple[list[Node], bool]:
    """What stands in the ``$( )`` of a word, and whether nothing else in it is of an
    unknown kind.
    """
    found: list[Node] = []
    known, waiting = True, [node]
    while waiting:
        inner = waiting.pop()
        if inner.type == "command_substitution":
            found.extend(inner.named_children)
        else:
            known = known and inner.type in programs()["bash"]["inner"]
            waiting.extend(inner.named_children)
    return found, known


def survey(text: str, limit: int = _MAX_SURVEY) -> list[Found]:
    """Lists the commands of a line, also those inside other constructs; best effort, for warnings
    only.
    """
    text = text[:limit]
    root = _parse(text)
    found: list[Found] = []
    by_end: list[tuple[Any, Found]] = []
    for node in _walk(root):
        if len(found) >= _MAX_FOUND:
            break
        if node.type in programs()["bash"]["commands"]:
            item = _found(node, text)
            if item.words or item.assignments:
                found.append(item)
                by_end.append((node, item))
        elif node.type == "file_redirect" and found:
            operator, target = _redirect(node, text)
            owner = next(
                (f for n, f in reversed(by_end) if n.start_byte <= node.start_byte), found[-1]
            )
            owner.redirects.append((operator, target))
        elif node.type == "file_redirect":
            found.append(Found(redirects=[_redirect(node, text)]))
        elif node.type == "variable_assignment" and (
            node.parent is None or node.parent.type != "command"
        ):
            found.append(Found(assignments=[_text(node, text).partition("=")[0]]))
    _connect(by_end, found)
    return found


def _connect(placed: list[tuple[Any, Found]], found: list[Found]) -> None:
    """Says whose output each command gets: in front of it in a pipeline, or substituted into its
    words.
    """
    positions = {id(item): index for index, item in enumerate(found)}
    for node, item in placed:
        above = node.parent
        while above is not None:
            if above.type == "pipeline":
                item.input += [
                    positions[id(other)]
                    for other_node, other in placed
                    if above.start_byte <= other_node.start_byte
                    and other_node.end_byte <= node.start_byte
                ]
            if above.type in ("command_substitution", "process_substitution"):
                owner = above.parent
                while owner is not None and owner.type != "command":
                    owner = owner.parent
                for other in (found for node, found in placed if node == owner):
                    other.text.append(positions[id(item)])
            above = above.parent


def _text(node: Node, text: str) -> str:
    return text[node.start_byte : node.end_byte]


def _redirect(node: Node, text: str) -> tuple[str, str]:
    operator = next((child.type for child in node.children if not child.is_named), ">")
    target = node.child_by_field_name("destination")
    return operator, "" if target is None else _unquote(_text(target, text))


def _found(node: Node, text: str) -> Found:
    item = Found()
    if node.type != "command":
        return Found(words=[_text(node, text).split(None, 1)[0]], literal=[True])
    for child in node.named_children:
        if child.type == "variable_assignment":
            item.assignments.append(_text(child, text).partition("=")[0])
        elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect", "comment"):
            continue
        else:
            inner = (
                child.named_children[0]
                if child.type == "command_name" and child.named_children
                else child
            )
            kinds = programs()["bash"]["literal"]
            literal = inner.type in kinds and all(
                n.type in kinds or n.type == "string_content" for n in _walk(inner)
            )
            item.words.append(_unquote(_text(child, text)) if literal else _text(child, text))
            item.literal.append(literal)
    return item


def _unquote(raw: str) -> str:
    """Quote removal of a word without expansions."""
    return _QUOTED.sub(_plain, raw.replace("\\\n", ""))


def _plain(match: re.Match[str]) -> str:
    single, double, escaped = match.groups()
    return _ESCAPED.sub(r"\1", double) if double is not None else single or escaped or ""
