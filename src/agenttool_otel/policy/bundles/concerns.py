"""The packages of ``agenttool.rules``: which there are, whether a decision can ask them, and one
rule for each.

The stock decision asks every package below ``agenttool.rules`` by iteration: ``some name;
data.agenttool.rules[name].deny``. OPA takes that as it is. For the embedded engine such a rule is
written out here, once for each package, because its compiled form knows no computed names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule, parse_program
from agenttool_otel.policy.rego.tree import walk

RULES: Final[Path] = ("agenttool", "rules")
"""The package whose sub-packages are the concerns of the stock decision."""

FINDINGS: Final = ("deny", "ask")
"""The sets of a concern that the decision looks at."""

_MARK: Final = ".".join(("data", *RULES)) + "["


def iterates(modules: Mapping[str, str]) -> bool:
    """Tell whether some rule goes through the packages of ``agenttool.rules``."""
    return any(_MARK in text for text in modules.values())


def check_concerns(bundle: Bundle, program: Program) -> None:
    """Refuse a bundle with a rule package that its decision would not ask.

    Raises:
        PolicyLoadError: a package lies too deep, has no set ``deny`` or ``ask``, has something else
            of that name, or the data has something in the place of rules; with file and line.
    """
    if (bundle.data.get("agenttool") or {}).get("rules"):
        raise PolicyLoadError(
            "data/agenttool/rules: only rules lie there; settings lie in data/agenttool/settings"
        )
    kinds: dict[str, set[str]] = {}
    for module in program.modules:
        if module.package[: len(RULES)] != RULES:
            continue
        kinds.setdefault(_concern_of(module), set()).update(_findings(module))
    for name, found in kinds.items():
        if not found:
            raise PolicyLoadError(
                f"package agenttool.rules.{name} has no set deny or ask, so that no decision asks it"
            )


def _concern_of(module: Module) -> str:
    if len(module.package) == len(RULES) + 1:
        return module.package[-1]
    raise PolicyLoadError(
        f"{module.file}:{module.line}: package {'.'.join(module.package)} is asked by no decision: "
        "a rule package lies one level below agenttool.rules"
    )


def _findings(module: Module) -> Iterator[str]:
    size = len(RULES) + 1
    for rule in module.rules:
        name = rule.path[size] if len(rule.path) > size else ""
        if name not in FINDINGS:
            continue
        if "Set" not in (rule.node.get("Spec") or {}).get("head", {}):
            raise PolicyLoadError(
                f"{rule.file}:{rule.line}: {rule.name} is not a set: write {name} contains ..."
            )
        yield name


class _Use(NamedTuple):
    """One place in a rule that goes through the packages."""

    variable: str  # the name's variable
    start: int  # byte offset of the variable in the brackets
    end: int  # its end
    member: str  # what is looked at in each package
    negated: bool  # under a ``not``


def written_out(modules: Mapping[str, str]) -> Mapping[str, str]:
    """Return the modules with each rule that goes through the packages written out, once for each
    that has it.

    What comes after such a rule keeps its line: all but the first are put at the end of their file.
    A rule of another form stays as it is.
    """
    if not iterates(modules):
        return modules
    program = parse_program(modules)
    concerns: dict[str, set[str]] = {}
    for module in program.modules:
        if len(module.package) == len(RULES) + 1 and module.package[: len(RULES)] == RULES:
            names = {
                rule.path[len(RULES) + 1]
                for rule in module.rules
                if len(rule.path) > len(RULES) + 1
            }
            concerns.setdefault(module.package[-1], set()).update(names)
    return {module.file: _module(module, concerns) for module in program.modules}


def _module(module: Module, concerns: Mapping[str, set[str]]) -> str:
    source = module.text.encode("utf-8")
    added: list[bytes] = []
    for rule in sorted(module.rules, key=_start, reverse=True):
        copies = list(_copies(source, rule, concerns))
        if not copies:
            continue
        span = rule.node["Spec"]["span"]
        source = source[: span["start"]] + copies[0] + source[span["end"] :]
        added[:0] = copies[1:]
    return (
        b"\n\n".join([source.rstrip(b"\n"), *added]).decode("utf-8") + "\n"
        if added
        else source.decode("utf-8")
    )


def _start(rule: Rule) -> int:
    start: int = next(iter(rule.node.values()))["span"]["start"]
    return start


def _copies(source: bytes, rule: Rule, concerns: Mapping[str, set[str]]) -> Iterator[bytes]:
    """Yield one text of a rule for each package that has what the rule looks at."""
    spec = rule.node.get("Spec")
    uses = list(_uses(spec)) if spec is not None else []
    if (
        spec is None
        or not uses
        or "Set" not in spec["head"]
        or len({use.variable for use in uses}) != 1
    ):
        return
    declared = [node["SomeVars"] for node in walk(spec) if "SomeVars" in node]
    if len(declared) != 1 or len(declared[0]["vars"]) != 1:
        return
    start, end = spec["span"]["start"], spec["span"]["end"]
    looked_at = {use.member for use in uses if not use.negated}
    asked = [name for name, defined in sorted(concerns.items()) if looked_at <= defined]
    if not asked:  # an empty set, on as many lines
        lines = "\n" * source[start:end].count(b"\n")
        yield f'{rule.path[-1]} contains "" if {{{lines}false }}'.encode()
    for name in asked:
        edits = [(use.start, use.end, f'"{name}"') for use in uses]
        edits.append(
            (
                declared[0]["span"]["start"],
                declared[0]["span"]["end"],
                f'{uses[0].variable} := "{name}"',
            )
        )
        text, at = b"", start
        for first, last, new in sorted(edits):
            text += source[at:first] + new.encode()
            at = last
        yield text + source[at:end]


def _uses(spec: Any) -> Iterator[_Use]:
    negated = [node["NotExpr"] for node in walk(spec) if "NotExpr" in node]
    for node in walk(spec):
        inner = node.get("RefDot")
        bracket = inner["refr"].get("RefBrack") if inner is not None else None
        if (
            inner is None
            or bracket is None
            or "Var" not in bracket["index"]
            or _path(bracket["refr"]) != ("data", *RULES)
        ):
            continue
        variable = bracket["index"]["Var"]
        start, end = variable["span"]["start"], variable["span"]["end"]
        under_not = any(one["span"]["start"] <= start < one["span"]["end"] for one in negated)
        yield _Use(variable["value"], start, end, inner["field"][1], under_not)


def _path(node: Any) -> Path | None:
    """Return the words of a reference of plain words."""
    words: list[str] = []
    while "RefDot" in node:
        words.append(node["RefDot"]["field"][1])
        node = node["RefDot"]["refr"]
    return (node["Var"]["value"], *reversed(words)) if "Var" in node else None
