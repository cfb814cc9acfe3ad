"""The packages of ``agenttool.rules``: which there are, whether a decision can ask them, and one
rule for each.

The stock decision asks every package below ``agenttool.rules`` by iteration: ``some name;
data.agenttool.rules[name].deny``. OPA takes that as it is. For the embedded engine such a rule is
written out here, once for each package, because its compiled form has no computed names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule, parse_program
from agenttool_otel.policy.rego.tree import Node, only, variable, walk

RULES: Final[Path] = ("agenttool", "rules")
"""The package whose sub-packages are the concerns of the stock decision."""

FINDINGS: Final = ("deny", "ask")
"""The sets of a concern that the decision looks at."""

_MARK: Final = ".".join(("data", *RULES)) + "["


def iterates(modules: Mapping[str, str]) -> bool:
    """Return whether some rule goes through the packages of ``agenttool.rules``."""
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
    for rule in module.rules:
        name = _member_of(rule)
        if name not in FINDINGS:
            continue
        head = (rule.node.get("Spec") or {}).get("head", {})
        if "Set" not in head:
            raise PolicyLoadError(
                f"{rule.file}:{rule.line}: {rule.name} is not a set: write {name} contains ..."
            )
        yield name


def _member_of(rule: Rule) -> str:
    """Return the name that a rule of a concern has in its package: ``deny``."""
    size = len(RULES) + 1
    return rule.path[size] if len(rule.path) > size else ""


def _is_concern(package: Path) -> bool:
    return len(package) == len(RULES) + 1 and package[: len(RULES)] == RULES


class _Use(NamedTuple):
    """One place in a rule that goes through the packages."""

    variable: str  # the name's variable
    start: int  # byte offset of the variable in the brackets
    end: int  # its end
    member: str  # what is looked at in each package
    negated: bool  # under a ``not``


class _Edit(NamedTuple):
    """A part of a source and the text that replaces it."""

    start: int  # byte offset of the part
    end: int  # its end
    new: str  # the text that replaces it


def written_out(modules: Mapping[str, str]) -> Mapping[str, str]:
    """Return the modules with each rule that goes through the packages written out, once for each
    that has it.

    What comes after such a rule keeps its line: all but the first are put at the end of their file.
    A rule of another form stays as it is.
    """
    if not iterates(modules):
        return modules
    program = parse_program(modules)
    members: dict[str, set[str]] = {}
    for module in program.modules:
        if not _is_concern(module.package):
            continue
        defined = members.setdefault(module.package[-1], set())
        for rule in module.rules:
            defined.add(_member_of(rule))
    return {module.file: _written_out(module, members) for module in program.modules}


def _written_out(module: Module, members: Mapping[str, set[str]]) -> str:
    source = module.text.encode("utf-8")
    added: list[bytes] = []
    # from the last rule to the first, so that the places of those before it stay right
    for rule in sorted(module.rules, key=_start, reverse=True):
        copies = list(_copies(source, rule, members))
        if not copies:
            continue
        span = rule.node["Spec"]["span"]
        before = source[: span["start"]]
        after = source[span["end"] :]
        source = before + copies[0] + after
        added = copies[1:] + added
    if not added:
        return source.decode("utf-8")
    parts = [source.rstrip(b"\n"), *added]
    text = b"\n\n".join(parts)
    return text.decode("utf-8") + "\n"


def _start(rule: Rule) -> int:
    _, definition = only(rule.node)
    start: int = definition["span"]["start"]
    return start


def _copies(source: bytes, rule: Rule, members: Mapping[str, set[str]]) -> Iterator[bytes]:
    """Yield one text of a rule for each package that has what the rule looks at."""
    spec = rule.node.get("Spec")
    if spec is None or "Set" not in spec["head"]:
        return
    uses = list(_uses(spec))
    names = {use.variable for use in uses}
    if len(names) != 1:
        return
    declaration = _only_declaration(spec)
    if declaration is None:
        return
    start = spec["span"]["start"]
    end = spec["span"]["end"]
    concerns = _concerns_with(uses, members)
    if not concerns:
        # an empty set, on as many lines
        lines = "\n" * source[start:end].count(b"\n")
        set_name = rule.path[-1]
        yield f'{set_name} contains "" if {{{lines}false }}'.encode()
    for concern in concerns:
        # some name; data.agenttool.rules[name].deny -> name := "shell"; ...rules["shell"].deny
        assignment = f'{uses[0].variable} := "{concern}"'
        edits = [_Edit(declaration["start"], declaration["end"], assignment)]
        for use in uses:
            edits.append(_Edit(use.start, use.end, f'"{concern}"'))
        yield _edited(source[:end], start, edits)


def _concerns_with(uses: list[_Use], members: Mapping[str, set[str]]) -> list[str]:
    """Return the packages that have every member which a rule looks at without ``not``."""
    needed = {use.member for use in uses if not use.negated}
    concerns: list[str] = []
    for name, defined in sorted(members.items()):
        if needed <= defined:
            concerns.append(name)
    return concerns


def _only_declaration(spec: Node) -> Node | None:
    """Return the place of the one ``some name`` of a rule; ``None`` where it has others."""
    declared = [node["SomeVars"] for node in walk(spec) if "SomeVars" in node]
    if len(declared) != 1:
        return None
    declaration = declared[0]
    if len(declaration["vars"]) != 1:
        return None
    span: Node = declaration["span"]
    return span


def _edited(source: bytes, start: int, edits: list[_Edit]) -> bytes:
    """Return the source from a place on, with parts of it replaced."""
    text = b""
    for edit in sorted(edits):
        text += source[start : edit.start]
        text += edit.new.encode()
        start = edit.end
    return text + source[start:]


def _uses(spec: Any) -> Iterator[_Use]:
    negated = [node["NotExpr"]["span"] for node in walk(spec) if "NotExpr" in node]
    for node in walk(spec):
        lookup = node.get("RefDot")
        if lookup is None:
            continue
        bracket = lookup["refr"].get("RefBrack")
        if bracket is None or "Var" not in bracket["index"]:
            continue
        if _path(bracket["refr"]) != ("data", *RULES):
            continue
        name = bracket["index"]["Var"]
        start = name["span"]["start"]
        yield _Use(
            variable=name["value"],
            start=start,
            end=name["span"]["end"],
            member=lookup["field"][1],
            negated=any(span["start"] <= start < span["end"] for span in negated),
        )


def _path(node: Any) -> Path | None:
    """Return the words of a reference of plain words."""
    words: list[str] = []
    while "RefDot" in node:
        words.append(node["RefDot"]["field"][1])
        node = node["RefDot"]["refr"]
    first = variable(node)
    if first is None:
        return None
    return (first, *reversed(words))
