"""Checks a project: it loads, uses what its engine has, is documented, and reads what the
input has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.explaining import title_above
from agenttool_otel.authoring.opa_program import OpaRun, find_opa, opa_errors, opa_version, unpacked
from agenttool_otel.authoring.probes import Prober
from agenttool_otel.authoring.project import Project, parse_tests
from agenttool_otel.authoring.unread import missing_data
from agenttool_otel.errors import PolicyError, PolicyUnavailable
from agenttool_otel.names import EngineName, EntryPoint
from agenttool_otel.policy.bundles.check import check_program, entry_path, load_program
from agenttool_otel.policy.bundles.input_schema import write_input_schema
from agenttool_otel.policy.bundles.own_rules import CUSTOM, KINDS, rule_problems
from agenttool_otel.policy.bundles.reads import obstacles
from agenttool_otel.policy.bundles.settings_check import settings_problems
from agenttool_otel.policy.engines.evaluation import CompiledBundle
from agenttool_otel.policy.rego.builtins import EMBEDDED_BUILTINS, OPA_BUILTINS, REFUSED_BUILTINS
from agenttool_otel.policy.rego.syntax import Module

_MANY_INTERPRETED: Final = 0.25  # of the inputs
_SCHEMA: Final = re.compile(r"^#\s+- input: schema\.input\s*$", re.MULTILINE)
_PLACE: Final = re.compile(r"^(\S+?):(\d+): (.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    file: str  # its file; empty: it is about no file
    line: int  # its line, or 0
    message: str  # what is wrong

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(slots=True)
class Check:
    """One check."""

    name: str  # what was looked at
    status: str  # ``passed``, ``failed``, ``warned`` or ``skipped``
    detail: str = ""  # with what, or why not
    problems: list[Problem] = field(default_factory=list)  # what was found


class CheckReport(NamedTuple):
    """All checks of a project."""

    checks: list[Check]  # in the order in which they ran

    @property
    def ok(self) -> bool:
        """Nothing failed."""
        return all(check.status != "failed" for check in self.checks)

    def to_json_object(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}


def problem_of(error: PolicyError) -> Problem:
    """Split the message of an error into file, line and what is wrong."""
    match = _PLACE.match(str(error))
    return Problem(match[1], int(match[2]), match[3]) if match else Problem("", 0, str(error))


def check_project(
    project: Project, *, engine: str = EngineName.EMBEDDED, strict: bool = False
) -> CheckReport:
    """Check a project."""
    checks = [
        _builtins(project, EngineName.EMBEDDED, EMBEDDED_BUILTINS, engine == EngineName.EMBEDDED),
        _builtins(project, "OPA", OPA_BUILTINS, engine != EngineName.EMBEDDED),
        check_load(project, engine),
        *(check(project) for check in (_settings, _tests, _documented, _placed, _read, _typed)),
    ]
    if engine == EngineName.EMBEDDED:
        checks.append(_fast(project, checks))
    if strict:
        for check in checks:
            check.status = "failed" if check.status == "warned" else check.status
    return CheckReport(checks)


def _done(
    name: str, problems: list[Problem], *, detail: str = "", otherwise: str = "failed"
) -> Check:
    return Check(name, otherwise if problems else "passed", detail, problems)


def _builtins(project: Project, engine: str, known: frozenset[str], needed: bool) -> Check:
    problems = [
        Problem(rule.file, call.line, f"{rule.name} uses {call.name}{_refused(call.name)}")
        for rule in project.program.rules
        if project.is_own(rule.file)
        for call in sorted(rule.calls, key=lambda item: item.start)
        if call.name not in known
    ]
    detail = f"not in {engine}, or not with OPA's answers" if problems else f"all in {engine}"
    return _done(
        f"builtins: {engine}", problems, detail=detail, otherwise="failed" if needed else "warned"
    )


def _refused(name: str) -> str:
    on_purpose = (
        ", which is refused on purpose: a decision depends on its input and its bundle alone"
    )
    return on_purpose if name in REFUSED_BUILTINS else ""


def check_load(project: Project, engine: str) -> Check:
    """Load a project as its engine will."""
    detail = "whole bundle" if project.base is None else f"on top of {project.base.revision}"
    try:
        # its own manifest and data; joined to the stock bundle it may lie anywhere
        load_program(project.own)
        if engine == EngineName.EMBEDDED:
            CompiledBundle(project.whole, (EntryPoint.DECISION,), fast=False)
            # every rule compiles, those too that an empty input does not reach
            Prober(project.program, project.whole.data_json, ())
        else:
            check_program(
                load_program(project.whole),
                builtins=OPA_BUILTINS,
                entry_points=(EntryPoint.DECISION,),
                engine="OPA",
            )
    except PolicyError as error:
        problem = problem_of(error)
        if not problem.file and EntryPoint.DECISION in problem.message:
            problem = Problem(*_near_decision(project), problem.message)
        problems = [problem]
        if problem.message.endswith("is recursive") and not project.is_own(problem.file):
            problems = _circles(project) or problems
        return Check("load", "failed", f"{detail}, for {engine}", problems)
    problems = [problem_of(PolicyError(message)) for message in rule_problems(project.whole)]
    return _done("load", problems, detail=f"{detail}, for {engine}")


def _circles(project: Project) -> list[Problem]:
    """The project's own rules that lead back to themselves through the stock bundle."""
    found = []
    for rule in project.program.rules:
        if not project.is_own(rule.file):
            continue
        for reference in rule.references:
            if reference.base == "data" and rule in project.program.reachable(reference.path):
                name = ".".join(("data", *reference.path))
                found.append(
                    Problem(
                        rule.file,
                        reference.line,
                        f"{rule.name} is recursive: {name} asks it in turn",
                    )
                )
                break
    return found


def _near_decision(project: Project) -> tuple[str, int]:
    """Where the decision would be looked for."""
    package = entry_path(EntryPoint.DECISION)[:-1]
    for module in project.program.modules:
        if module.package == package:
            return module.file, module.line
    first = project.program.modules[0]
    return first.file, first.line


def _settings(project: Project) -> Check:
    problems = [Problem("", 0, message) for message in settings_problems(project.whole)]
    return _done(
        "settings", problems, detail="data.agenttool.settings against the rules that read it"
    )


def _tests(project: Project) -> Check:
    try:
        parse_tests(project)
    except PolicyError as error:
        return Check("tests", "failed", "they can't be read", [problem_of(error)])
    if not (found := len(project.own.tests)):
        return Check("tests", "warned", "there are none", [Problem("", 0, "no _test.rego file")])
    return Check(
        "tests", "passed", f"{found} file{'s' if found > 1 else ''}, run by agenttool policy test"
    )


def _own_modules(project: Project) -> Iterable[Module]:
    return (module for module in project.program.modules if project.is_own(module.file))


def _documented(project: Project) -> Check:
    problems = []
    packages: dict[tuple[str, ...], list[Module]] = {}
    for module in _own_modules(project):
        packages.setdefault(module.package, []).append(module)
    for module, *others in packages.values():
        # OPA wants a package described once, in whichever of its files
        files = (module, *others)
        if not any(title_above(item.text, item.line) for item in files):
            problems.append(
                Problem(module.file, module.line, "the package has no METADATA with a title")
            )
        rules = [rule for item in files for rule in item.rules]
        if any(
            reference.base == "input" for rule in rules for reference in rule.references
        ) and not any(_SCHEMA.search(item.text) for item in files):
            message = "the METADATA name no schema (schemas: - input: schema.input), so the input is not type-checked"
            problems.append(Problem(module.file, module.line, message))
        problems += [
            Problem(rule.file, rule.line, f"{rule.name} has no METADATA with a title")
            for rule in rules
            if rule.path[-1] in KINDS and len(rule.path) > len(module.package)
            if not title_above(module.text, rule.line)
        ]
    return _done("METADATA", problems, otherwise="warned")


def _placed(project: Project) -> Check:
    if project.base is None:
        return Check("places", "skipped", "a whole bundle has its own order")
    problems = []
    for module in _own_modules(project):
        package = ".".join(module.package)
        if module.package[:2] != CUSTOM:
            message = (
                f"package {package} is not under agenttool.custom, so the decision does not ask it"
            )
            problems.append(Problem(module.file, module.line, message))
        elif len(module.package) > len(CUSTOM) + 1:
            message = (
                f"package {package} lies too deep: agenttool.custom and one level below are asked"
            )
            if any(rule.path[-1] in KINDS for rule in module.rules):
                problems.append(Problem(module.file, module.line, message))
    for file, text in project.own.tests.items():
        match = re.search(r"^package\s+agenttool\.custom(\.\S+)?\s*$", text, re.MULTILINE)
        if match and "agenttool.permission" in text:
            line = text.count("\n", 0, match.start()) + 1
            message = "a test below agenttool.custom is a part of the decision, so asking for it is recursive"
            problems.append(Problem(file, line, f"{message}; use package agenttool.custom_test"))
    return _done("places", problems, otherwise="warned")


def _read(project: Project) -> Check:
    problems = [Problem(rule.file, line, message) for rule, line, message in missing_data(project)]
    return _done("reads", problems, detail="data that is there", otherwise="warned")


def _typed(project: Project) -> Check:
    name = "input types"
    if (program := find_opa()) is None:
        return Check(
            name, "skipped", "no OPA program found: set AGENTTOOL_OPA, or put opa into PATH"
        )
    try:
        with unpacked(project.whole, {**project.support, **project.own.tests}) as folder:
            schemas = folder / "agenttool_schemas"
            write_input_schema(schemas / "input.json")
            files = sorted({*project.whole.modules, *project.support, *project.own.tests})
            arguments = (
                "check",
                "--strict",
                "--format=json",
                "--schema",
                schemas.name,
                "data.json",
            )
            run = OpaRun(program, *arguments, *files, folder=folder)
            detail = f"opa check --strict --schema, OPA {opa_version(program)}"
    except PolicyUnavailable as error:
        return Check(name, "failed", str(error), [Problem("", 0, str(error))])
    if run.status == 0:
        return Check(name, "passed", detail)
    problems = [
        Problem(file.removeprefix(f"{folder}/"), line, text) for file, line, text in opa_errors(run)
    ]
    return Check(name, "failed", detail, problems)


def _fast(project: Project, before: Iterable[Check]) -> Check:
    """Whether every decision is compiled and can be used again; one rule that is not costs the
    calls of every tool.
    """
    name = "speed"
    if any(
        check.status == "failed" and check.name in ("load", f"builtins: {EngineName.EMBEDDED}")
        for check in before
    ):
        return Check(name, "skipped", "it does not load")
    compiled = CompiledBundle(project.whole, (EntryPoint.DECISION,))
    problems = []
    if compiled.compiled.reason:
        problem = problem_of(PolicyError(compiled.compiled.reason))
        problems.append(
            Problem(
                problem.file, problem.line, f"{problem.message}: all rules are interpreted for it"
            )
        )
    elif compiled.interpreted > _MANY_INTERPRETED:
        message = f"{compiled.interpreted:.0%} of made-up inputs need the interpreter: a rule has two values, or errs"
        problems.append(Problem("", 0, message))
    notes = [
        Problem(rule.file, line, f"{rule.name} {why}: no decision is used again for it")
        for rule in project.program.reachable(entry_path(EntryPoint.DECISION))
        if project.is_own(rule.file)
        for line, why in obstacles(rule)
    ]
    form = "interpreted" if problems else "compiled"
    detail = f"{form}; decisions are {'made anew for each call' if notes else 'used again for equal calls'}"
    return Check(name, "warned" if problems else "passed", detail, problems + notes)
