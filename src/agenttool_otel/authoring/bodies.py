"""The bodies of rules, cut into the expressions that they consist of.

The engine's syntax tree says where an expression starts, and not reliably where it ends. So the
text of each one is cut out here, parsed again, and used only when it gives the very tree that the
engine evaluates.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.policy.rego.native import new_engine
from agenttool_otel.policy.rego.syntax import Module, Rule

_PLACES: Final = frozenset({"span", "eidx", "sidx", "qidx"})
_SPAN: Final = frozenset({"line", "col", "start", "end"})
_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|(#[^\n]*)')
_KEY: Final = re.compile(r"[^{}\"]*?\bcontains\b(.*)\bif$", re.DOTALL)
_CASE: Final = re.compile(r"[A-Za-z_]\w*\[([^\]]*)\]\s*(?::=\s*true\s*)?if$")


class Expression(NamedTuple):
    """One expression of a body."""

    text: str  # its source
    line: int  # first line in the file
    start: int  # byte offset of its start
    end: int  # byte offset of its end

    @property
    def shown(self) -> str:
        """The source on one line, without comments."""
        code = _COMMENT.sub(lambda match: "" if match[1] else match[0], self.text)
        return " ".join(code.split()).rstrip(";").rstrip()


@dataclass(slots=True)
class Body:
    """One way of a rule to be true."""

    rule: Rule  # the rule
    module: Module  # its module
    line: int  # line of its head
    # what has to hold, in the order of the source; empty: always true, or not ``readable``
    expressions: list[Expression] = field(default_factory=list)
    key: str = ""  # source of what it adds to a set, if it does
    case: str = ""  # source of what stands in brackets in its head, for a test over many cases
    label: str = ""  # the finding's fixed name, if it has one
    readable: bool = True  # its source could be cut up safely
    # indexes of ``expressions`` in an order in which every variable has a value before it is used
    order: list[int] = field(default_factory=list)


def imports_of(module: Module) -> str:
    """Return the import statements of a module as source."""
    lines = module.text.splitlines()
    return "\n".join(line for line in lines if line.startswith("import "))


def bodies_of(rule: Rule, module: Module) -> list[Body]:
    """Cut up a rule."""
    kind, value = next(iter(rule.node.items()))
    if kind == "Default":
        return []
    head_kind, head = next(iter(value["head"].items()))
    if head_kind == "Func":
        return []
    source = module.text.encode("utf-8")
    key = head.get("key") if head_kind == "Set" else None
    bodies: list[Body] = []
    for node in value["bodies"]:
        # the first body starts on the line of the head's end
        body = Body(rule, module, node["span"]["line"] if bodies else rule.line, label=_label(key))
        _cut(body, node["query"], source)
        if key is not None:
            body.key = _head_text(
                _KEY, source, value["span"]["start"], node["query"]["span"]["start"]
            )
        if head_kind == "Compr" and "RefBrack" in head["refr"]:
            body.case = _head_text(
                _CASE, source, value["span"]["start"], node["query"]["span"]["start"]
            )
        body.readable = body.readable and _same_tree(body, node["query"], key)
        bodies.append(body)
    if not bodies:
        bodies.append(Body(rule, module, rule.line, label=_label(key)))
    return bodies


def _label(key: Any) -> str:
    """Return the value of ``rule`` in an object literal, where it is fixed."""
    for part in (key or {}).get("Object", {}).get("fields", ()):
        name, content = part[1], part[2]
        if name.get("String", {}).get("value") == "rule" and "String" in content:
            return str(content["String"]["value"])
    return ""


def _cut(body: Body, query: dict[str, Any], source: bytes) -> None:
    statements = sorted(query["stmts"], key=lambda item: item["span"]["start"])
    start, end = query["span"]["start"], query["span"]["end"]
    starts = [_start(source, item["span"]["start"], start) for item in statements]
    braces = bool(starts) and starts[0] > start
    end = source.rfind(b"}", start, end) if braces else _line_end(source, max(start, end))
    for index, (here, item) in enumerate(zip(starts, statements, strict=True)):
        following = starts[index + 1] if index + 1 < len(starts) else end
        text = source[here:following].decode("utf-8", "replace").strip()
        if text.endswith(";"):
            text = text[:-1].rstrip()
        body.expressions.append(Expression(text, item["span"]["line"], here, following))
    body.order = list(range(len(body.expressions)))


def _start(source: bytes, start: int, least: int) -> int:
    """The tree gives a string's place without its opening quote."""
    return start - 1 if start >= least and source[start - 1 : start] in (b'"', b"`") else start


def _line_end(source: bytes, start: int) -> int:
    end = source.find(b"\n", start)
    return len(source) if end < 0 else end


def _head_text(pattern: re.Pattern[str], source: bytes, start: int, query: int) -> str:
    """Return what a pattern's group has of the head of a rule, which ends where its query
    begins.
    """
    match = pattern.match(source[start:query].decode("utf-8", "replace").rstrip())
    return match[1].strip() if match else ""


def _same_tree(body: Body, query: dict[str, Any], key: Any) -> bool:
    """Parse the pieces again, and compare."""
    head = f"probe contains {body.key}" if key is not None else "probe"
    pieces = "\n".join(item.text for item in body.expressions)
    engine = new_engine()
    try:
        engine.add_policy("probe.rego", f"package probe\n\n{head} if {{\n{pieces}\n}}\n")
        text = engine.get_ast_as_json()
    except Exception:
        return False
    specification = json.loads(text)[0]["ast"]["rules"][0]["Spec"]
    again = specification["bodies"][0]["query"]
    if _plain(again["stmts"]) != _plain(query["stmts"]):
        return False
    return key is None or _plain(specification["head"]["Set"]["key"]) == _plain(key)


def _plain(node: Any) -> Any:
    """The tree without places."""
    if isinstance(node, dict):
        if node.keys() == _SPAN:
            return None
        return {name: _plain(value) for name, value in node.items() if name not in _PLACES}
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return node
