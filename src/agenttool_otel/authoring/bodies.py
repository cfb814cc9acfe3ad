"""The bodies of rules, cut into the expressions that they consist of.

The engine's syntax tree has the start of an expression, and not reliably its end. So the
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

    def ordered(self) -> list[Expression]:
        """Return the expressions in that order."""
        return [self.expressions[index] for index in self.order]


def imports_of(module: Module) -> str:
    """Return the import statements of a module as source."""
    lines = module.text.splitlines()
    return "\n".join(line for line in lines if line.startswith("import "))


def bodies_of(rule: Rule, module: Module) -> list[Body]:
    """Return the bodies of a rule; none for a default and for a function.

    A function has no value before it has its arguments.
    """
    # {"Spec": {"head": {"Set": {...}}, "bodies": [...]}}
    kind, value = next(iter(rule.node.items()))
    if kind == "Default":
        return []
    head_kind, head = next(iter(value["head"].items()))
    if head_kind == "Func":
        return []
    key = head.get("key") if head_kind == "Set" else None
    label = _label(key)
    over_cases = head_kind == "Compr" and "RefBrack" in head["refr"]
    source = module.text.encode("utf-8")
    start = value["span"]["start"]
    bodies: list[Body] = []
    for node in value["bodies"]:
        query = node["query"]
        # the first body starts on the line of the head's end
        line = node["span"]["line"] if bodies else rule.line
        body = Body(rule, module, line, label=label)
        _cut(body, query, source)
        head_source = _stripped(source, start, query["span"]["start"])
        if key is not None:
            body.key = _group(_KEY, head_source)
        if over_cases:
            body.case = _group(_CASE, head_source)
        body.readable = _same_tree(body, query, key)
        bodies.append(body)
    if not bodies:
        bodies.append(Body(rule, module, rule.line, label=label))
    return bodies


def _label(key: Any) -> str:
    """Return the name of a finding, where it is fixed: ``{"rule": "shop.refund", ...}``."""
    if key is None or "Object" not in key:
        return ""
    for field_node in key["Object"]["fields"]:
        name = field_node[1]
        content = field_node[2]
        if name.get("String", {}).get("value") != "rule":
            continue
        if "String" in content:
            return str(content["String"]["value"])
    return ""


def _cut(body: Body, query: dict[str, Any], source: bytes) -> None:
    """Cut the source of a query into its expressions."""
    statements = sorted(query["stmts"], key=lambda item: item["span"]["start"])
    if not statements:
        return
    start = query["span"]["start"]
    starts = [_start(source, item["span"]["start"], start) for item in statements]
    if starts[0] > start:
        # deny contains f if { ... }
        end = source.rfind(b"}", start, query["span"]["end"])
    else:
        # deny contains f if input.tool.name == "deploy"
        end = _line_end(source, max(start, query["span"]["end"]))
    for statement, here, following in zip(statements, starts, [*starts[1:], end], strict=True):
        text = _stripped(source, here, following)
        if text.endswith(";"):
            text = text[:-1].rstrip()
        line = statement["span"]["line"]
        body.expressions.append(Expression(text, line, here, following))
    body.order = list(range(len(body.expressions)))


def _start(source: bytes, start: int, least: int) -> int:
    """The place where an expression starts: the tree has a string's without its opening quote."""
    if start >= least and source[start - 1 : start] in (b'"', b"`"):
        return start - 1
    return start


def _line_end(source: bytes, start: int) -> int:
    end = source.find(b"\n", start)
    return len(source) if end < 0 else end


def _stripped(source: bytes, start: int, end: int) -> str:
    return source[start:end].decode("utf-8", "replace").strip()


def _group(pattern: re.Pattern[str], head: str) -> str:
    match = pattern.match(head)
    return match[1].strip() if match else ""


def _same_tree(body: Body, query: dict[str, Any], key: Any) -> bool:
    """Whether the pieces, parsed again, give the tree that the engine evaluates."""
    head = "probe"
    if key is not None:
        head = f"probe contains {body.key}"
    pieces = "\n".join(expression.text for expression in body.expressions)
    module = f"package probe\n\n{head} if {{\n{pieces}\n}}\n"
    specification = _specification(module)
    if specification is None:
        return False
    again = specification["bodies"][0]["query"]
    if without_places(again["stmts"]) != without_places(query["stmts"]):
        return False
    if key is None:
        return True
    return bool(without_places(specification["head"]["Set"]["key"]) == without_places(key))


def _specification(module: str) -> Any:
    """Return the tree of a module's first rule; ``None`` where the text is no module."""
    engine = new_engine()
    try:
        engine.add_policy("probe.rego", module)
        text = engine.get_ast_as_json()
    except Exception:
        return None
    return json.loads(text)[0]["ast"]["rules"][0]["Spec"]


def first_query(text: str) -> Any:
    """Return the tree of the expressions that a text consists of; ``None`` where it has none."""
    specification = _specification(f"package probe\n\nprobe if {{\n{text}\n}}\n")
    if specification is None or not specification["bodies"]:
        return None
    return specification["bodies"][0]["query"]


def without_places(node: Any) -> Any:
    """Return a tree without its places, so that two of the same text are equal."""
    if isinstance(node, dict):
        if node.keys() == _SPAN:
            return None
        return {name: without_places(value) for name, value in node.items() if name not in _PLACES}
    if isinstance(node, list):
        return [without_places(item) for item in node]
    return node
