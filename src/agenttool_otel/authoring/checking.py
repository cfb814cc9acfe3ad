"""Checks a project: it loads, uses what its engine has, is documented, and reads what the
input has.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.explaining import title_above
from agenttool_otel.authoring.opa_program import OpaRun, find_opa, opa_errors, opa_version, unpacked
from agenttool_otel.authoring.probes import Prober
from agenttool_otel.authoring.project import Project, parse_tests
from agenttool_otel.authoring.unread import missing_data, unread_data
from agenttool_otel.authoring.words.check import slips_of
from agenttool_otel.authoring.words.inputs import slips_of_tests
from agenttool_otel.authoring.words.slips import Slip
from agenttool_otel.authoring.words.tools import slips_beside_tools
from agenttool_otel.catalog import ToolSpec
from agenttool_otel.errors import PolicyError, PolicyUnavailable
from agenttool_otel.names import EngineName, EntryPoint
from agenttool_otel.policy.bundles.check import check_program, entry_path, load_program
from agenttool_otel.policy.bundles.input_schema import write_input_schema
from agenttool_otel.policy.bundles.own_rules import CUSTOM, KINDS, rule_problems
from agenttool_otel.policy.bundles.reads import obstacles
from agenttool_otel.policy.bundles.settings_check import settings_problems
from agenttool_otel.policy.engines.evaluation import CompiledBundle
from agenttool_otel.policy.rego.builtins import EMBEDDED_BUILTINS, OPA_BUILTINS, REFUSED_BUILTINS
from agenttool_otel.policy.rego.syntax import Module, Path, Reference, Rule

_MANY_INTERPRETED: Final = 0.25  # of the inputs
_REFUSED: Final = (
    ", which is refused on purpose: a decision depends on its input and its bundle alone"
)
_NO_SCHEMA: Final = (
    "the METADATA name no schema (schemas: - input: schema.input), so the input is not type-checked"
)
_RECURSIVE_TEST: Final = (
    "a test below agenttool.custom is a part of the decision, so asking for it is recursive; use"
    " package agenttool.custom_test"
)
_CUSTOM_PACKAGE: Final = re.compile(r"^package\s+agenttool\.custom(\.\S+)?\s*$", re.MULTILINE)
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
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}"


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
    # agenttool/custom/shop.rego:12: rego_type_error: undefined function
    match = _PLACE.match(str(error))
    if match is None:
        return Problem("", 0, str(error))
    return Problem(match[1], int(match[2]), match[3])


def check_project(
    project: Project,
    *,
    engine: str = EngineName.EMBEDDED,
    strict: bool = False,
    tools: Sequence[ToolSpec] | None = None,
) -> CheckReport:
    """Check a project.

    Args:
        project: The policy.
        engine: The engine that it is for.
        strict: Whether a warning counts as a failure.
        tools: The tools that it is for, where they are known.
    """
    embedded = engine == EngineName.EMBEDDED
    # the builtins of the other engine are a warning: the policy may move there
    checks = [
        _builtins(project, EngineName.EMBEDDED, EMBEDDED_BUILTINS, needed=embedded),
        _builtins(project, "OPA", OPA_BUILTINS, needed=not embedded),
        check_load(project, engine),
        _settings(project),
        _tests(project),
        _documented(project),
        _placed(project),
        _read(project),
        *_words(project),
        _typed(project),
    ]
    if tools is not None:
        checks.append(_beside_tools(project, tools, checks))
    if embedded:
        checks.append(_fast(project, checks))
    if strict:
        for check in checks:
            if check.status == "warned":
                check.status = "failed"
    return CheckReport(checks)


def check_text(project: Project) -> list[Check]:
    """Check what a project says, without an engine: a part of ``check_project``.

    Args:
        project: The policy.
    """
    load = [problem_of(PolicyError(message)) for message in rule_problems(project.whole)]
    return [_done("load", load), _settings(project), _read(project), *_words(project)]


def _done(
    name: str, problems: list[Problem], *, detail: str = "", otherwise: str = "failed"
) -> Check:
    """A check that passed where there are no problems, and else has the status ``otherwise``."""
    status = otherwise if problems else "passed"
    return Check(name, status, detail, problems)


def _builtins(project: Project, engine: str, known: frozenset[str], *, needed: bool) -> Check:
    problems = []
    for rule in project.program.rules:
        if not project.is_own(rule.file):
            continue
        for call in sorted(rule.calls, key=lambda item: item.start):
            if call.name in known:
                continue
            message = f"{rule.name} uses {call.name}"
            # http.send, opa.runtime
            if call.name in REFUSED_BUILTINS:
                message += _REFUSED
            problems.append(Problem(rule.file, call.line, message))
    detail = f"all in {engine}"
    if problems:
        detail = f"not in {engine}, or not with OPA's answers"
    status = "failed" if needed else "warned"
    return _done(f"builtins: {engine}", problems, detail=detail, otherwise=status)


def check_load(project: Project, engine: str) -> Check:
    """Load a project as its engine will."""
    detail = f"whole bundle, for {engine}"
    if project.base is not None:
        detail = f"on top of {project.base.revision}, for {engine}"
    try:
        _load(project, engine)
    except PolicyError as error:
        return Check("load", "failed", detail, _load_problems(project, error))
    problems = [problem_of(PolicyError(message)) for message in rule_problems(project.whole)]
    return _done("load", problems, detail=detail)


def _load(project: Project, engine: str) -> None:
    # its own manifest and data; joined to the stock bundle it may lie anywhere
    load_program(project.own)
    if engine == EngineName.EMBEDDED:
        _ = project.compiled
        # every rule has to compile, also those that an empty input does not reach
        Prober(project.program, project.whole.data_json, ())
        return
    check_program(
        load_program(project.whole),
        builtins=OPA_BUILTINS,
        entry_points=(EntryPoint.DECISION,),
        engine="OPA",
    )


def _load_problems(project: Project, error: PolicyError) -> list[Problem]:
    problem = problem_of(error)
    if not problem.file and EntryPoint.DECISION in problem.message:
        file, line = _near_decision(project)
        problem = Problem(file, line, problem.message)
    # the engine names a rule of the stock bundle, which is recursive by a rule of the project
    if problem.message.endswith("is recursive") and not project.is_own(problem.file):
        own = _circles(project)
        if own:
            return own
    return [problem]


def _circles(project: Project) -> list[Problem]:
    """The project's own rules that lead back to themselves through the stock bundle."""
    problems = []
    for rule in project.program.rules:
        if not project.is_own(rule.file):
            continue
        reference = _leading_back(project, rule)
        if reference is not None:
            name = ".".join(("data", *reference.path))
            message = f"{rule.name} is recursive: {name} refers to it in turn"
            problems.append(Problem(rule.file, reference.line, message))
    return problems


def _leading_back(project: Project, rule: Rule) -> Reference | None:
    for reference in rule.references:
        if reference.base == "data" and rule in project.program.reachable(reference.path):
            return reference
    return None


def _near_decision(project: Project) -> tuple[str, int]:
    """File and line of the package that the decision belongs to, else of the first module."""
    package = entry_path(EntryPoint.DECISION)[:-1]
    for module in project.program.modules:
        if module.package == package:
            return module.file, module.line
    first = project.program.modules[0]
    return first.file, first.line


def _settings(project: Project) -> Check:
    problems = [Problem("", 0, message) for message in settings_problems(project.whole)]
    detail = "data.agenttool.settings against the rules that read it"
    return _done("settings", problems, detail=detail)


def _tests(project: Project) -> Check:
    try:
        parse_tests(project)
    except PolicyError as error:
        return Check("tests", "failed", "they can't be read", [problem_of(error)])
    count = len(project.own.tests)
    if count == 0:
        return Check("tests", "warned", "there are none", [Problem("", 0, "no _test.rego file")])
    files = "1 file" if count == 1 else f"{count} files"
    return Check("tests", "passed", f"{files}, run by agenttool policy test")


def _own_modules(project: Project) -> Iterable[Module]:
    return (module for module in project.program.modules if project.is_own(module.file))


def _documented(project: Project) -> Check:
    problems: list[Problem] = []
    packages: dict[Path, list[Module]] = {}
    for module in _own_modules(project):
        packages.setdefault(module.package, []).append(module)
    for modules in packages.values():
        problems += _package_problems(modules)
        for module in modules:
            problems += _rule_problems(module)
    return _done("METADATA", problems, otherwise="warned")


def _package_problems(modules: list[Module]) -> Iterator[Problem]:
    """What the METADATA of a package lack; OPA wants them once, in whichever of its files."""
    first = modules[0]
    if not any(title_above(module.text, module.line) for module in modules):
        yield Problem(first.file, first.line, "the package has no METADATA with a title")
    if not any(_reads_input(module) for module in modules):
        return
    if not any(_SCHEMA.search(module.text) for module in modules):
        yield Problem(first.file, first.line, _NO_SCHEMA)


def _reads_input(module: Module) -> bool:
    references = itertools.chain.from_iterable(rule.references for rule in module.rules)
    return any(reference.base == "input" for reference in references)


def _rule_problems(module: Module) -> Iterator[Problem]:
    for rule in module.rules:
        if rule.path[-1] not in KINDS or len(rule.path) <= len(module.package):
            continue
        if not title_above(module.text, rule.line):
            yield Problem(rule.file, rule.line, f"{rule.name} has no METADATA with a title")


def _placed(project: Project) -> Check:
    if project.base is None:
        return Check("places", "skipped", "a whole bundle has its own order")
    problems = []
    for module in _own_modules(project):
        message = _misplaced(module)
        if message:
            problems.append(Problem(module.file, module.line, message))
    for file, text in project.own.tests.items():
        package = _CUSTOM_PACKAGE.search(text)
        if package is not None and "agenttool.permission" in text:
            line = text.count("\n", 0, package.start()) + 1
            problems.append(Problem(file, line, _RECURSIVE_TEST))
    return _done("places", problems, otherwise="warned")


def _misplaced(module: Module) -> str:
    """Why the decision does not evaluate the rules of a module; empty when it does."""
    package = ".".join(module.package)
    if module.package[:2] != CUSTOM:
        return f"package {package} is not under agenttool.custom, so the decision does not ask it"
    if len(module.package) <= len(CUSTOM) + 1:
        return ""
    # agenttool.custom.shop.lib may hold functions, which the rules above it call
    if not any(rule.path[-1] in KINDS for rule in module.rules):
        return ""
    return f"package {package} lies too deep: agenttool.custom and one level below are asked"


def _read(project: Project) -> Check:
    problems = []
    opens = False
    for missing in missing_data(project):
        message = missing.message
        if missing.opens:
            opens = True
            message += ": without it the restriction never holds"
        problems.append(Problem(missing.rule.file, missing.line, message))
    problems += [Problem("", 0, message) for message in unread_data(project)]
    status = "failed" if opens else "warned"
    return _done("reads", problems, detail="data that is there", otherwise=status)


def _words(project: Project) -> Iterator[Check]:
    """What can never be true, what nothing reads, and tests that can't fail."""
    found = slips_of(project)
    yield _slipped("words", found.words, "what can be true, by types and closed lists of words")
    yield _slipped("findings", found.findings, "what deny, ask and allow hold")
    yield _slipped("meaning", found.habits, "rules that mean what they look like")
    yield _slipped("unread", found.unread, "rules that something reads")
    try:
        slips = slips_of_tests(project)
    except PolicyError:
        # the check "tests" names it
        yield Check("test inputs", "skipped", "the tests can't be read")
        return
    yield _slipped("test inputs", slips, "inputs and decisions in tests, tests that can fail")


def _beside_tools(project: Project, tools: Sequence[ToolSpec], before: Iterable[Check]) -> Check:
    """What can be seen once the tools are known, and was not named before."""
    known = {problem.message for check in before for problem in check.problems}
    found = []
    for slip in slips_beside_tools(project, tools):
        if slip.message not in known:
            found.append(slip)
    return _slipped("tools", found, f"names, globs and arguments of {len(tools)} tools")


def _slipped(name: str, slips: list[Slip], detail: str) -> Check:
    problems = [Problem(slip.file, slip.line, slip.message) for slip in slips]
    certain = any(slip.certain for slip in slips)
    return _done(name, problems, detail=detail, otherwise="failed" if certain else "warned")


def _typed(project: Project) -> Check:
    name = "input types"
    program = find_opa()
    if program is None:
        detail = "no OPA program found: set AGENTTOOL_OPA, or put opa into PATH"
        return Check(name, "skipped", detail)
    tests = {**project.support, **project.own.tests}
    try:
        with unpacked(project.whole, tests) as folder:
            schemas = folder / "agenttool_schemas"
            write_input_schema(schemas / "input.json")
            run = OpaRun(
                program,
                "check",
                "--strict",
                "--format=json",
                "--schema",
                schemas.name,
                "data.json",
                # not ".": the folder of the schema would be read as data
                *sorted({*project.whole.modules, *tests}),
                folder=folder,
            )
            detail = f"opa check --strict --schema, OPA {opa_version(program)}"
    except PolicyUnavailable as error:
        return Check(name, "failed", str(error), [Problem("", 0, str(error))])
    if run.status == 0:
        return Check(name, "passed", detail)
    problems = []
    for found in opa_errors(run):
        file = found.file.removeprefix(f"{folder}/")
        problems.append(Problem(file, found.line, found.message))
    return Check(name, "failed", detail, problems)


def _fast(project: Project, before: Iterable[Check]) -> Check:
    """Whether every decision is compiled and can be used again; one rule that is not costs the
    calls of every tool.
    """
    name = "speed"
    needed = ("load", f"builtins: {EngineName.EMBEDDED}")
    for check in before:
        if check.name in needed and check.status == "failed":
            return Check(name, "skipped", "it does not load")
    slow = _interpreted(project.compiled)
    obstructed = _not_cached(project)
    form = "interpreted" if slow else "compiled"
    reuse = "made anew for each call" if obstructed else "used again for equal calls"
    status = "warned" if slow else "passed"
    return Check(name, status, f"{form}; decisions are {reuse}", [*slow, *obstructed])


def _interpreted(bundle: CompiledBundle) -> list[Problem]:
    if bundle.compiled.reason:
        problem = problem_of(PolicyError(bundle.compiled.reason))
        message = f"{problem.message}: all rules are interpreted for it"
        return [Problem(problem.file, problem.line, message)]
    if bundle.interpreted <= _MANY_INTERPRETED:
        return []
    share = f"{bundle.interpreted:.0%} of made-up inputs"
    message = f"{share} need the interpreter: a rule has two values, or errs"
    return [Problem("", 0, message)]


def _not_cached(project: Project) -> list[Problem]:
    """The expressions for which no decision can be used again: ``time.now_ns()``."""
    problems = []
    for rule in project.program.reachable(entry_path(EntryPoint.DECISION)):
        if not project.is_own(rule.file):
            continue
        for line, why in obstacles(rule):
            message = f"{rule.name} {why}: no decision is used again for it"
            problems.append(Problem(rule.file, line, message))
    return problems
