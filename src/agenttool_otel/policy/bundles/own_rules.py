"""What is silent in Rego and mostly a slip, refused at load: rule sets that nobody asks, and input
that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.input_schema import input_schema
from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule, parse_program

KINDS: Final = ("deny", "ask", "allow")
"""Names of the rules that decide on a call, those that count most first."""

CUSTOM: Final = ("agenttool", "custom")
"""The package of one's own rules, which the stock decision asks, and those one level below it."""

_STOCK: Final = re.compile(r"^package\s+agenttool\.(?!custom\b)", re.MULTILINE)


def rule_problems(bundle: Bundle) -> list[str]:
    """Return why some rules beside the stock ones can have no effect, one sentence each."""
    joined = "presets" in (bundle.data.get("agenttool") or {}).get("defaults", {})
    own: dict[str, str] = {}
    for file, text in bundle.modules.items():
        if not joined or not _STOCK.search(text):
            own[file] = text
    if not own:
        return []
    program = parse_program(own)
    problems: list[str] = []
    if joined:
        problems += _unasked(program)
    problems += _missing_input(program)
    return problems


def _unasked(program: Program) -> Iterator[str]:
    """Find sets that look like findings and that neither the decision nor another rule asks for."""
    asked: set[Path] = set()
    for rule in program.rules:
        asked.update(path for path, _, _ in rule.functions)
        for reference in rule.references:
            if reference.base == "data":
                asked.add(reference.path)
    for module in program.modules:
        for rule in module.rules:
            hint = _unasked_hint(module, rule)
            if hint and not _is_asked(rule.path, asked):
                place = f"{rule.file}:{rule.line}"
                yield f"{place}: {rule.name} is asked by no decision{hint}"


def _unasked_hint(module: Module, rule: Rule) -> str:
    """Return what would let the decision ask a set of a finding's name; empty for other rules."""
    size = len(module.package)
    name = rule.path[size] if len(rule.path) > size else ""
    if name not in KINDS:
        return did_you_mean(name, KINDS, cutoff=0.75)  # a set "denny"
    if _is_custom(module.package):
        return ""
    return "; agenttool.custom and one level below it are asked"


def _is_custom(package: Path) -> bool:
    return package[: len(CUSTOM)] == CUSTOM and len(package) <= len(CUSTOM) + 1


def _is_asked(rule: Path, asked: Iterable[Path]) -> bool:
    """Return whether a reference leads to a rule, to what is below it, or to all of its package."""
    for path in asked:
        shared = min(len(path), len(rule))
        if path[:shared] == rule[:shared]:
            return True
    return False


def _missing_input(program: Program) -> Iterator[str]:
    schema = input_schema()
    seen: set[tuple[str, Path]] = set()
    for rule in program.rules:
        for reference in rule.references:
            place = (rule.file, reference.path)
            if reference.base != "input" or place in seen:
                continue
            seen.add(place)
            hint = _lacking(schema, reference.path)
            if hint is None:
                continue
            name = ".".join(("input", *reference.path))
            yield f"{rule.file}:{reference.line}: {name} is not in a policy's input{hint}"


_FREE: Final = {"type", "description"}


def _lacking(schema: Mapping[str, Any], path: Path) -> str | None:
    """Return what was meant by the first segment that no input has; ``None`` where all may
    be there.
    """
    nodes = [schema]
    for segment in path:
        branches: list[Mapping[str, Any]] = []
        for node in nodes:
            branches += node.get("anyOf", (node,))
        if any(_is_free(branch) for branch in branches):
            return None  # whatever a tool takes
        nodes = []
        for branch in branches:
            nodes += _members_of(branch, segment)
        if not nodes:
            names: list[str] = []
            for branch in branches:
                names += branch.get("properties", {})
            return did_you_mean(segment, names)
    return None


def _members_of(schema: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that an object's member of a name may have."""
    members = schema.get("properties", {})
    if name in members:
        yield members[name]
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        yield others


def _is_free(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is an object with any members: ``{"type": "object"}``."""
    return schema.get("type", "object") == "object" and schema.keys() <= _FREE
