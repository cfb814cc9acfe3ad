"""The grammar of bash: tree-sitter-bash, and what is needed to use it safely."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LITERAL_KINDS = frozenset({"word", "string", "raw_string", "concatenation", "number"})
"""The kinds of nodes that are words without anything to expand."""

REDIRECT_KINDS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
"""The kinds of nodes that are redirections."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_local = threading.local()


def _parser() -> Parser:
    parser: Parser | None = getattr(_local, "parser", None)
    if parser is None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        parser = _local.parser = Parser(Language(tree_sitter_bash.language()))
    return parser


def parse(text: str) -> Node:
    """Parse a stand-in of the same length, so that offsets in bytes are offsets in the text.

    The scanner of tree-sitter-bash 0.25 looks characters up in the C library's table of 256 and
    crashes the process on high code points. To the shell they are letters of a word, and so the
    stand-in has a letter there. A control character becomes a blank.
    """
    printable = _CONTROL.sub(" ", text)
    stand_in = _NOT_ASCII.sub("x", printable)
    return _parser().parse(stand_in.encode("ascii")).root_node


def walk(root: Node) -> Iterator[Node]:
    """Yield a node and the named nodes below it in the order of the text, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))
