"""Which parts of the input can a decision depend on? Proven from the policy's syntax tree, or not
claimed.

What each rule reads is found by following the values (``flows.py``), down to members of elements.
Where some rule is not understood, it is the set of constant prefixes after the word ``input``: a value
that is passed on, iterated or indexed with a computed key lies below its prefix. Nothing is claimed for
``with``, for builtins whose answer depends on more than their arguments, and where the input is used as
a whole.

One kind of rule is left out although it reads: a rule whose first statement is a guard, which is a
rule that depends on nothing but the bundle's data, the session's mode, what is declared of the tool,
the names of the arguments, and views of the facts and the session, and which does not hold. Such a
rule can't succeed, so nothing depends on what comes after. That is how a policy that supports budgets,
but has none configured, stays independent of the session's counters, and one that looks for URLs in
the texts of tools that connect, of the texts of all others. A read set is therefore one of the guards
that do not hold.

Where flows are not known, and all that looks at a part of the input is one of a few builtins
(``rego.VIEWS``), only what that returns is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from agenttool_otel.policy.bundles.flows import AT, EACH, KEYS, MARK, TYPE
from agenttool_otel.policy.rego.builtins import NONDETERMINISTIC
from agenttool_otel.policy.rego.syntax import Path, Program, Rule
from agenttool_otel.policy.rego.tree import only

VIEW: Final = MARK
"""Begins the last part of a path of which only a view is read."""

_GUARDS: Final = frozenset(
    {
        ("session", "mode"),
        ("tool",),
        ("permission_profile",),
        ("input", KEYS),
        ("input", TYPE),
        # of a policy whose flows are not known
        ("input", "\0is_object"),
        ("input", "\0object.keys"),
    }
)
"""What a guard may read, and what is below it: few different values for each tool, so that read
sets can be kept.
"""

_SORTED: Final = frozenset({"facts", "session"})
"""Of these a guard may read what has few values: types, whether there is something, and words of the
bundle. Where they differ from call to call, so may the read set.
"""

_FREE: Final = frozenset({"input", "resources"})
"""Members of the input whose shape no schema fixes."""

VOLATILE: Final[tuple[Path, ...]] = (
    ("time",),
    ("invocation", "id"),
    ("invocation", "native_call_id"),
)
"""Input paths that differ in every call: a policy that reads one is not cached."""


class ReadSet(NamedTuple):
    """Input paths that an entry point can read, none below another."""

    typed: tuple[Path, ...]  # paths whose shape the input's schema fixes
    # paths into what has no schema: whatever a model wrote, or an application looked up
    arguments: tuple[Path, ...]
    words: frozenset[str] = frozenset()  # the texts that one is compared with

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return self.typed + self.arguments


class Guard(NamedTuple):
    """The first statement of some rules."""

    path: Path  # the rule that it is
    reads: frozenset[Path]  # what it reads
    guarded: tuple[Rule, ...]  # the rules that can't succeed where it does not hold

    @property
    def sorts(self) -> bool:
        """Whether it reads what differs from call to call of a tool."""
        return any(path[0] in _SORTED and path[:2] != ("session", "mode") for path in self.reads)


def read_set(program: Program, entry: Path, failing: Iterable[Guard] = ()) -> ReadSet | None:
    """Find the input paths that an entry point can read where some guards do not hold."""
    paths: set[Path] = set()
    dead: set[int] = set()
    for guard in failing:
        dead.update(id(rule) for rule in guard.guarded)
    for rule in program.closure(program.matching(entry), lambda rule: id(rule) in dead):
        if next(obstacles(rule), None) is not None:
            return None
        paths.update(_read(rule))
    paths.update(_given(program, entry))
    typed: list[Path] = []
    arguments: list[Path] = []
    for path in sorted(paths):
        if _is_below_another(path, paths):
            continue
        if path[0] in _FREE:
            arguments.append(path)
        else:
            typed.append(path)
    return ReadSet(typed=tuple(typed), arguments=tuple(arguments))


def _is_below_another(path: Path, paths: Collection[Path]) -> bool:
    """Return whether ``("tool",)`` is read beside ``("tool", "name")``."""
    return any(path[:size] in paths for size in range(1, len(path)))


def guards(program: Program, entry: Path) -> list[Guard]:
    """Find the guards of the rules that a query can evaluate."""
    guarded: dict[Path, list[Rule]] = {}
    for rule in program.reachable(entry):
        path = _guard(program, rule)
        if path is not None:
            guarded.setdefault(path, []).append(rule)
    found: list[Guard] = []
    for path, rules in sorted(guarded.items()):
        reads: set[Path] = set()
        for rule in program.reachable(path):
            reads.update(_read(rule))
        reads.update(_given(program, path))
        found.append(Guard(path=path, reads=frozenset(reads), guarded=tuple(rules)))
    return found


def _given(program: Program, path: Path) -> Iterator[Path]:
    """Yield what of the input is in the value of what lies at a path."""
    for rule in program.matching(path):
        yield from filter(None, rule.gives)


def _read(rule: Rule) -> Iterator[Path]:
    if rule.members is not None:
        yield from filter(None, rule.members)
        return
    for reference in rule.references:
        if reference.base != "input":
            continue
        if reference.view and reference.whole:
            yield (*reference.path, VIEW + reference.view)
        else:
            yield reference.path


def _is_view(part: str) -> bool:
    return part.startswith(VIEW) and part != EACH and not part.startswith(AT)


def obstacles(rule: Rule) -> Iterator[tuple[int, str]]:
    """Yield, with its line, each thing in a rule that keeps a decision from being used again."""
    if rule.has_with:
        yield rule.line, "uses with"
    for call in rule.calls:
        if call.name in NONDETERMINISTIC:
            yield call.line, f"uses {call.name}"
    for reference in rule.references:
        if reference.base != "input":
            continue
        path = reference.path
        if not path:
            yield reference.line, "uses the whole input"
        elif any(part.startswith(VIEW) for part in path):
            yield reference.line, "reads a member whose name is a control character"
        elif _is_volatile(path):
            name = ".".join(("input", *path))
            yield reference.line, f"reads {name}, which differs in every call"


def _is_volatile(path: Path) -> bool:
    """Return whether a path leads to a volatile one, or below it."""
    for volatile in VOLATILE:
        shared = min(len(path), len(volatile))
        if path[:shared] == volatile[:shared]:
            return True
    return False


def _guard(program: Program, rule: Rule) -> Path | None:
    """Return the guard that is the whole first statement of a rule's one body, if there is one."""
    start = _first_statement(rule)
    if start is None:
        return None
    found = [
        reference.path
        for reference in rule.references
        if reference.start == start and reference.base == "data" and reference.whole
    ]
    if len(found) != 1:
        return None
    path = found[0]
    if all(other.path != path for other in program.rules):
        return None
    if not all(map(_is_for_guards, _given(program, path))):
        return None
    if all(_may_guard(other) for other in program.reachable(path)):
        return path
    return None


def _first_statement(rule: Rule) -> int | None:
    """Return where the first statement of a rule's one body begins, if it is a bare reference."""
    spec = rule.node.get("Spec") or {}
    bodies = spec.get("bodies") or []
    if len(bodies) != 1 or rule.has_with:
        return None
    statements = bodies[0]["query"]["stmts"]
    if not statements:
        return None
    expression = statements[0]["literal"].get("Expr")
    if expression is None:
        return None
    kind, _ = only(expression["expr"])
    if kind not in ("Var", "RefDot"):
        return None
    start: int = statements[0]["span"]["start"]
    return start


def _may_guard(rule: Rule) -> bool:
    """Return whether a rule depends on nothing but data and what a guard may read."""
    if rule.has_with or any(call.name in NONDETERMINISTIC for call in rule.calls):
        return False
    return all(_is_for_guards(path) for path in _read(rule))


def _is_for_guards(path: Path) -> bool:
    plain = tuple(part for part in path if not part.startswith(VIEW))
    if path[:1] and path[0] in _SORTED and _is_view(path[-1]):
        return True
    return path in _GUARDS or plain in _GUARDS or (len(plain) >= 2 and plain[:1] in _GUARDS)
