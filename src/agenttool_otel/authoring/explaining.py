"""Explains one decision: which rules fired, which nearly did and what stopped them, with file and
line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.bodies import Expression
from agenttool_otel.authoring.probes import Prober, Reading
from agenttool_otel.authoring.project import Project
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.check import entry_path
from agenttool_otel.policy.bundles.own_rules import CUSTOM, KINDS
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.rego.syntax import Path, Program, Reference, Rule
from agenttool_otel.policy.types import PolicyInput, Verdict

_RELAY: Final = ("agenttool", "extension")
_DECISION: Final = entry_path(EntryPoint.DECISION)
_MAX_SHOWN: Final = 120  # characters of one value of the input


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
    findings: tuple[Any, ...] = ()  # the values that it adds to its set
    passed: int = 0  # how many of its expressions held before one failed
    total: int = 0  # how many it has
    failed_line: int = 0  # line of the first expression that failed, or 0
    failed_text: str = ""  # that expression
    # the values that the expression reads of the input, by path; "undefined" where there is none
    reads: dict[str, Any] = field(default_factory=dict)
    # what became of the rules of the project that this expression asks: their bodies, one level
    # deep
    because: tuple[ExplainedRule, ...] = ()
    problem: str = ""  # an error of evaluation

    def to_json_object(self) -> dict[str, Any]:
        """Return the rule as plain JSON data."""
        document: dict[str, Any] = {
            "rule": self.rule,
            "kind": self.kind,
            "label": self.label,
            "title": self.title,
            "file": self.file,
            "line": self.line,
            "own": self.own,
        }
        if self.fired:
            document["findings"] = list(self.findings)
            return document
        document["passed"] = self.passed
        document["expressions"] = self.total
        document["failed"] = None
        if self.failed_line:
            document["failed"] = {
                "file": self.file,
                "line": self.failed_line,
                "expression": self.failed_text,
                "reads": self.reads,
            }
        document["because"] = [
            {**helper.to_json_object(), "fired": helper.fired} for helper in self.because
        ]
        document["problem"] = self.problem
        return document


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
    if verdict.sandbox is not None:
        names = verdict.sandbox.unordered or (verdict.sandbox.name,)
        profile = {"profile": names[0]} if len(names) == 1 else {"profiles": list(names)}
        obligations["sandbox"] = {**profile, "network": verdict.sandbox.network}
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
        "approvals_needed": verdict.approvals_needed,
        "required_roles": list(verdict.required_roles),
        "open_questions": list(verdict.open_questions),
        "answered_questions": [
            {"question": question, "by": by} for question, by in verdict.answered_questions
        ],
        "expires_at": verdict.expires_at,
        "source": verdict.source.value,
        "engine": verdict.engine,
        "revision": verdict.revision,
        "fail_closed": verdict.fail_closed.value if verdict.fail_closed else None,
    }


def explain(
    project: Project,
    document: PolicyInput,
    *,
    shown: Mapping[str, Any] | None = None,
    filled_in: Sequence[str] = (),
    timeout: float = 10.0,
) -> Explanation:
    """Explain what a project decides about an input.

    Args:
        project: The policy.
        document: A complete policy input.
        shown: The input as it may be printed, redacted; ``document`` where it is not given.
        filled_in: Paths of the input that were not given, for the report.
        timeout: Seconds that the decision may take.

    Raises:
        PolicyLoadError: The project's rules do not load.
    """
    # one decision: compiling would cost more than it saves
    engine = EmbeddedEngine(project.whole, fast=False)
    decider = Decider([engine], timeout=timeout)
    try:
        verdict = decider.decide(document)
    finally:
        decider.close()
    rules = _contributing(project.program)
    helpers = _helpers(project, rules)
    prober = Prober(project.program, project.whole.data_json, [*rules, *helpers])
    of_rules: list[Reading] = []
    of_helpers: list[Reading] = []
    helper_ids = {id(rule) for rule in helpers}
    for reading in prober.readings(document):
        if id(reading.body.rule) in helper_ids:
            of_helpers.append(reading)
        else:
            of_rules.append(reading)
    fired: list[ExplainedRule] = []
    rest: list[ExplainedRule] = []
    for reading in of_rules:
        rule = _explained(project, reading, document if shown is None else shown, of_helpers)
        if rule.fired:
            fired.append(rule)
        else:
            rest.append(rule)
    fired.sort(key=lambda rule: (_rank(rule.kind), rule.file, rule.line))
    rest.sort(key=_distance)
    return Explanation(
        verdict=verdict,
        deciding=tuple(_deciding(project.program, verdict, fired)),
        fired=tuple(fired),
        nearly=tuple(rule for rule in rest if rule.passed > 0),
        others=tuple(rule for rule in rest if rule.passed == 0),
        filled=tuple(filled_in),
    )


def _contributing(program: Program) -> list[Rule]:
    """The rules that contribute to a decision: those named deny, ask and allow that it can reach.

    A whole bundle without such rules is explained by the decision's own bodies.
    """
    reachable = {id(rule) for rule in program.reachable(_DECISION)}
    rules = []
    for rule in program.rules:
        if id(rule) in reachable and _is_contributing(rule.path):
            rules.append(rule)
    if rules:
        return rules
    return [rule for rule in program.rules if rule.path == _DECISION]


def _is_contributing(path: Path) -> bool:
    if len(path) < 2 or path[-1] not in KINDS:
        return False
    # agenttool.extension.deny only collects the findings of agenttool.custom
    if path[:2] == _RELAY:
        return False
    # agenttool.custom.deny and agenttool.custom.shop.deny are collected, nothing below
    return path[:2] != CUSTOM or len(path) <= len(CUSTOM) + 2


def _helpers(project: Project, rules: list[Rule]) -> list[Rule]:
    """The project's own rules that those rules refer to; functions have no value without arguments."""
    if project.root is None:
        return []
    wanted = set()
    for rule in rules:
        if not project.is_own(rule.file):
            continue
        for reference in rule.references:
            if reference.whole:
                wanted.add(reference.path)
    chosen = {id(rule) for rule in rules}
    helpers = []
    for rule in project.program.rules:
        if rule.path not in wanted or id(rule) in chosen:
            continue
        if project.is_own(rule.file):
            helpers.append(rule)
    return helpers


def _rank(kind: str) -> int:
    """The place in the order deny, ask, allow; other kinds come first."""
    return KINDS.index(kind) if kind in KINDS else -1


def _distance(rule: ExplainedRule) -> tuple[bool, int, int, str, int]:
    """The key to sort by: own rules first, then those that lack the fewest expressions."""
    lacking = rule.total - rule.passed
    return not rule.own, lacking, _rank(rule.kind), rule.file, rule.line


def _explained(
    project: Project,
    reading: Reading,
    document: Mapping[str, Any],
    helpers: Iterable[Reading],
) -> ExplainedRule:
    """Describe what became of one body of a rule.

    Args:
        project: The policy.
        reading: What the engine computed for the body.
        document: The input as it may be printed.
        helpers: Readings of the rules that the body may refer to.
    """
    body = reading.body
    failed = reading.failed
    reads: dict[str, Any] = {}
    because: list[ExplainedRule] = []
    if failed is not None:
        for reference in _references_in(body.rule, failed):
            if reference.base == "data":
                because += _explained_helpers(project, reference.path, document, helpers)
            elif reference.base == "input" and reference.path:
                name = ".".join(("input", *reference.path))
                reads[name] = _at(document, reference.path)
    kind = body.rule.path[-1]
    if kind not in KINDS and body.rule.path != _DECISION:
        kind = "rule"
    return ExplainedRule(
        rule=body.rule.name,
        kind=kind,
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


def _references_in(rule: Rule, expression: Expression) -> Iterator[Reference]:
    for reference in rule.references:
        if expression.start <= reference.start < expression.end:
            yield reference


def _explained_helpers(
    project: Project,
    path: Path,
    document: Mapping[str, Any],
    helpers: Iterable[Reading],
) -> Iterator[ExplainedRule]:
    for reading in helpers:
        if reading.body.rule.path == path:
            # one level deep: two helpers may refer to each other's helpers
            yield _explained(project, reading, document, ())


def _names(values: Iterable[Any]) -> str:
    """The rule names of findings: ``{"rule": "shop.refund", ...}``."""
    names = set()
    for value in values:
        if isinstance(value, dict) and "rule" in value:
            names.add(str(value["rule"]))
    return ", ".join(sorted(names))


def _at(document: Any, path: Iterable[str]) -> Any:
    value = document
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return "undefined"
        value = value[part]
    text = json.dumps(value, ensure_ascii=False)
    # a whole file that the model wants to write
    if len(text) > _MAX_SHOWN:
        return f"{text[:_MAX_SHOWN]}..."
    return value


def title_above(text: str, line: int) -> str:
    """Return the title in the METADATA block that ends above a line, or an empty string."""
    block: list[str] = []
    for previous in reversed(text.splitlines()[: line - 1]):
        if not previous.startswith("#"):
            break
        block.append(previous.lstrip("#").strip())
    if "METADATA" not in block:
        return ""
    for entry in block:
        if entry.startswith("title:"):
            # title: "Deploys: on weekdays only"
            return entry.removeprefix("title:").strip().strip("\"'")
    return ""


def _deciding(
    program: Program,
    verdict: Verdict,
    fired: Iterable[ExplainedRule],
) -> Iterable[tuple[str, int]]:
    """The places of the rule that the decision names: bodies that gave such a finding, else where
    its name stands.
    """
    name = verdict.rule_ref
    if not name:
        return []
    places = []
    for rule in fired:
        if any(_is_finding_of(value, name) for value in rule.findings):
            places.append((rule.file, rule.line))
    if places:
        return places
    # a whole bundle of its own has no findings: "rule_ref": "house.no_deploys" in a decision
    spelled = set()
    for candidate in program.rules:
        if any(_is_text(node, name) for node in candidate.nodes):
            spelled.add((candidate.file, candidate.line))
    return sorted(spelled)


def _is_finding_of(value: Any, name: str) -> bool:
    return isinstance(value, dict) and value.get("rule") == name


def _is_text(node: Mapping[str, Any], text: str) -> bool:
    literal = node.get("String")
    return isinstance(literal, dict) and literal.get("value") == text
