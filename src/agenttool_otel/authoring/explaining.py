"""Explains one decision: which rules fired, which nearly did and what stopped them, with file and
line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.probes import Prober, Reading
from agenttool_otel.authoring.project import Project
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.check import entry_path
from agenttool_otel.policy.bundles.own_rules import CUSTOM, KINDS
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.rego.syntax import Program, Rule
from agenttool_otel.policy.types import PolicyInput, Verdict

_RELAY: Final = ("agenttool", "extension")
_DECISION: Final = entry_path(EntryPoint.DECISION)


@dataclass(frozen=True, slots=True)
class ExplainedRule:
    """One body of a rule, and what became of it."""

    rule: str  # full name of the rule
    kind: str  # ``deny``, ``ask``, ``allow``, ``decision``, or ``rule`` for one that they ask
    label: str  # the finding's name, as far as it is fixed
    title: str  # title in its METADATA
    file: str  # its file
    line: int  # its line
    own: bool  # it belongs to the project, not to the stock bundle
    fired: bool  # it holds for the input
    findings: tuple[Any, ...] = ()  # what it says
    passed: int = 0  # how many of its expressions held before one failed
    total: int = 0  # how many it has
    failed_line: int = 0  # line of the first expression that failed, or 0
    failed_text: str = ""  # that expression
    # what that expression reads of the input, by path; what is not there reads ``undefined``
    reads: dict[str, Any] = field(default_factory=dict)
    # what became of the rules of the project that this expression asks: their bodies, one level
    # deep
    because: tuple[ExplainedRule, ...] = ()
    problem: str = ""  # an error of evaluation

    def to_json_object(self) -> dict[str, Any]:
        """Return the rule as plain JSON data."""
        told = ("rule", "kind", "label", "title", "file", "line", "own")
        common: dict[str, Any] = {name: getattr(self, name) for name in told}
        if self.fired:
            return {**common, "findings": list(self.findings)}
        failed = {
            "file": self.file,
            "line": self.failed_line,
            "expression": self.failed_text,
            "reads": self.reads,
        }
        return {
            **common,
            "passed": self.passed,
            "expressions": self.total,
            "failed": failed if self.failed_line else None,
            "because": [{**item.to_json_object(), "fired": item.fired} for item in self.because],
            "problem": self.problem,
        }


class Explanation(NamedTuple):
    """Everything about one decision."""

    verdict: Verdict  # the decision
    deciding: tuple[tuple[str, int], ...]  # names of the deciding rule's places, as ``file:line``
    fired: tuple[ExplainedRule, ...]  # rules that hold, those that count most first
    # rules that don't, of which at least one expression holds, the nearest first
    nearly: tuple[ExplainedRule, ...]
    others: tuple[ExplainedRule, ...]  # rules of which no expression holds
    filled: tuple[str, ...] = ()  # paths of the input that were filled in

    def to_json_object(self) -> dict[str, Any]:
        """Return the explanation as plain JSON data."""
        return {
            "decision": verdict_object(self.verdict),
            "decided_by": [{"file": file, "line": line} for file, line in self.deciding],
            "filled_in": list(self.filled),
            "fired": [rule.to_json_object() for rule in self.fired],
            "nearly": [rule.to_json_object() for rule in self.nearly],
            "others": [rule.to_json_object() for rule in self.others],
        }


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a decision document."""
    obligations: dict[str, Any] = {
        "redact_input": list(verdict.redact_input),
        "redact_result": list(verdict.redact_result),
        "max_inline_chars": verdict.max_inline_chars,
        "persistence": verdict.persistence,
    }
    return {
        "behavior": verdict.behavior.value,
        "reason": {
            "type": verdict.reason_type.value,
            "rule_ref": verdict.rule_ref,
            "message": verdict.message,
        },
        "rule_refs": list(verdict.rule_refs),
        "updated_input": verdict.updated_input,
        "suggested_updates": list(verdict.suggested_updates),
        "blocked_path": verdict.blocked_path,
        "alternatives": list(verdict.alternatives),
        "obligations": {name: value for name, value in obligations.items() if value},
        "approver_roles": list(verdict.approver_roles),
        "expires_at": verdict.expires_at,
        "source": verdict.source.value,
        "engine": verdict.engine,
        "revision": verdict.revision,
        "fail_closed": None if verdict.fail_closed is None else verdict.fail_closed.value,
    }


def explain(
    project: Project,
    document: PolicyInput,
    *,
    shown: Mapping[str, Any] | None = None,
    timeout: float = 10.0,
) -> Explanation:
    """Explain what a project decides about an input."""
    # one question: compiling would cost more than it saves
    engine = EmbeddedEngine(project.whole, fast=False)
    decider = Decider([engine], timeout=timeout)
    try:
        verdict = decider.decide(document)
    finally:
        decider.close()
    visible = document if shown is None else shown
    rules = _contributing(project.program)
    helpers = _helpers(project, rules)
    readings = Prober(project.program, project.whole.data_json, [*rules, *helpers]).readings(
        document
    )
    asked = {id(rule) for rule in helpers}
    below = [reading for reading in readings if id(reading.body.rule) in asked]
    told = [
        _told(project, reading, visible, below)
        for reading in readings
        if id(reading.body.rule) not in asked
    ]
    fired = [item for item in told if item.fired]
    rest = sorted((item for item in told if not item.fired), key=_distance)
    fired.sort(key=lambda item: (_rank(item.kind), item.file, item.line))
    return Explanation(
        verdict,
        tuple(_deciding(project.program, verdict, fired)),
        tuple(fired),
        tuple(item for item in rest if item.passed > 0),
        tuple(item for item in rest if item.passed == 0),
    )


def _contributing(program: Program) -> list[Rule]:
    """The rules that say something about a call: those named deny, ask and allow that the decision
    can reach.

    A whole bundle without such rules is explained by the decision's own bodies.
    """
    reachable = {id(rule) for rule in program.reachable(_DECISION)}
    rules = [
        rule
        for rule in program.rules
        if id(rule) in reachable
        and len(rule.path) > 1
        and rule.path[-1] in KINDS
        # these hand on what the custom rules say
        and rule.path[:2] != _RELAY
        # nobody asks rules that lie deeper
        and (rule.path[:2] != CUSTOM or len(rule.path) <= len(CUSTOM) + 2)
    ]
    return rules or [rule for rule in program.rules if rule.path == _DECISION]


def _helpers(project: Project, rules: list[Rule]) -> list[Rule]:
    """The project's own rules that those rules ask by name; functions can't be asked without their
    arguments.
    """
    if project.root is None:
        return []
    wanted = {
        reference.path
        for rule in rules
        if project.is_own(rule.file)
        for reference in rule.references
        if reference.whole
    }
    chosen = {id(rule) for rule in rules}
    return [
        rule
        for rule in project.program.rules
        if rule.path in wanted and id(rule) not in chosen and project.is_own(rule.file)
    ]


def _rank(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else -1


def _distance(item: ExplainedRule) -> tuple[bool, float, int, str, int]:
    return not item.own, item.total - item.passed, _rank(item.kind), item.file, item.line


def _told(
    project: Project, reading: Reading, document: Mapping[str, Any], below: Iterable[Reading]
) -> ExplainedRule:
    body, failed = reading.body, reading.failed
    reads: dict[str, Any] = {}
    because: list[ExplainedRule] = []
    if failed is not None:
        for reference in body.rule.references:
            if not failed.start <= reference.start < failed.end:
                continue
            if reference.base == "input" and reference.path:
                reads[".".join(("input", *reference.path))] = _at(document, reference.path)
            because += [
                _told(project, item, document, ())
                for item in below
                if reference.base == "data" and item.body.rule.path == reference.path
            ]
    kind = body.rule.path[-1]
    return ExplainedRule(
        rule=body.rule.name,
        kind=kind if kind in KINDS or body.rule.path == _DECISION else "rule",
        label=body.label or _names(reading.values),
        title=title_above(body.module.text, body.line),
        file=body.rule.file,
        line=body.line,
        own=project.is_own(body.rule.file) and project.root is not None,
        fired=reading.fired,
        findings=reading.values,
        passed=reading.passed,
        total=len(body.expressions),
        failed_line=failed.line if failed is not None else 0,
        failed_text=failed.shown if failed is not None else "",
        reads=reads,
        because=tuple(because),
        problem=reading.problem,
    )


def _names(values: Iterable[Any]) -> str:
    names = {str(value["rule"]) for value in values if isinstance(value, dict) and "rule" in value}
    return ", ".join(sorted(names))


def _at(document: Any, path: Iterable[str]) -> Any:
    value = document
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return "undefined"
        value = value[part]
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 120 else f"{text[:120]}..."


def title_above(text: str, line: int) -> str:
    """Return the title in the METADATA block that ends above a line, or an empty string."""
    block: list[str] = []
    for previous in reversed(text.splitlines()[: line - 1]):
        if not previous.startswith("#"):
            break
        block.append(previous.lstrip("#").strip())
    if "METADATA" not in block:
        return ""
    titles = [entry.removeprefix("title:").strip() for entry in block if entry.startswith("title:")]
    return titles[0].strip("\"'") if titles else ""


def _deciding(
    program: Program, verdict: Verdict, fired: Iterable[ExplainedRule]
) -> Iterable[tuple[str, int]]:
    """The places of the rule that the decision names: bodies that gave such a finding, else where
    its name stands.
    """
    if not (name := verdict.rule_ref):
        return []
    places = [
        (item.file, item.line)
        for item in fired
        if any(isinstance(value, dict) and value.get("rule") == name for value in item.findings)
    ]
    if places:
        return places
    return sorted(
        {
            (rule.file, rule.line)
            for rule in program.rules
            for node in rule.nodes
            if isinstance(node.get("String"), dict) and node["String"].get("value") == name
        }
    )
