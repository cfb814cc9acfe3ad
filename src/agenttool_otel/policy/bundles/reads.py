"""Which parts of the input can a decision depend on? Proven from the policy's syntax tree, or not claimed.

Every access to the input starts at the word ``input`` (or an import of a part of it), so the set of constant prefixes
after that word, over all rules that the entry point can reach, covers whatever is read: a value that is passed on,
iterated or indexed with a computed key lies below its prefix. Nothing is claimed for ``with``, for builtins whose
answer depends on more than their arguments, and where the input is used as a whole.

One kind of rule is left out although it reads: a rule whose first statement is a rule that depends on the bundle's data
and the session's mode alone, and does not hold. For that bundle and mode such a rule can't succeed, so nothing depends
on what comes after. That is how a policy that knows budgets, but has none configured, stays independent of the
session's counters. A read set is therefore one of a mode, and the mode belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from agenttool_otel.policy.bundles.rego import Path, Program, Rule
from agenttool_otel.policy.engines.builtins import NONDETERMINISTIC

MODE: Final[Path] = ("session", "mode")
"""The one input path that a guard may read: hosts have few modes, so read sets can be kept for each."""

_FREE: Final = frozenset({"input", "resources"})
"""Members of the input whose shape no schema fixes."""

VOLATILE: Final[tuple[Path, ...]] = (("time",), ("invocation", "id"), ("invocation", "native_call_id"))
"""Input paths that differ in every call: a policy that reads one is not cached."""


class ReadSet(NamedTuple):
    """Input paths that an entry point can read, none below another."""

    typed: tuple[Path, ...]  # paths whose shape the input's schema fixes
    arguments: tuple[Path, ...]  # paths into what has no schema: whatever a model wrote, or an application looked up

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return self.typed + self.arguments


def read_set(program: Program, entry: Path, holds: Callable[[Path], bool] | None = None) -> ReadSet | None:
    """Find the input paths that an entry point can read."""
    paths: set[Path] = set()
    for rule in _alive(program, entry, holds, paths):
        if next(obstacles(rule), None) is not None:
            return None
        paths.update(reference.path for reference in rule.references if reference.base == "input")
    minimal = tuple(sorted(path for path in paths if not any(path[:size] in paths for size in range(1, len(path)))))
    return ReadSet(
        typed=tuple(path for path in minimal if path[0] not in _FREE),
        arguments=tuple(path for path in minimal if path[0] in _FREE),
    )


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
        if not reference.path:
            yield reference.line, "uses the whole input"
        elif any(reference.path[: len(path)] == path[: len(reference.path)] for path in VOLATILE):
            yield reference.line, f"reads {'.'.join(('input', *reference.path))}, which differs in every call"


def _alive(program: Program, entry: Path, holds: Callable[[Path], bool] | None, paths: set[Path]) -> list[Rule]:
    """Return the rules that a query can evaluate, without those that can't succeed; adds what guards read to paths."""
    if holds is None:
        return program.reachable(entry)

    def fails(rule: Rule) -> bool:
        guard = _guard(program, rule)
        if guard is None or holds(guard):
            return False
        references = (ref for other in program.reachable(guard) for ref in other.references)
        paths.update(ref.path for ref in references if ref.base == "input")
        return True

    return program.closure(program.matching(entry), fails)


def _guard(program: Program, rule: Rule) -> Path | None:
    """Return the rule of data and mode that is the whole first statement of a rule's one body, if there is one."""
    spec: dict[str, Any] = rule.node.get("Spec") or {}
    bodies = spec.get("bodies") or []
    if len(bodies) != 1 or rule.has_with:
        return None
    statements = bodies[0]["query"]["stmts"]
    expression = statements[0]["literal"].get("Expr") if statements else None
    if expression is None or next(iter(expression["expr"])) not in ("Var", "RefDot"):
        return None
    start = statements[0]["span"]["start"]
    found = [r for r in rule.references if r.start == start and r.base == "data" and r.whole]
    if len(found) != 1:
        return None
    path = found[0].path
    if not any(other.path == path for other in program.rules):
        return None
    for other in program.reachable(path):
        if other.has_with or any(call.name in NONDETERMINISTIC for call in other.calls):
            return None
        if any(reference.base == "input" and reference.path != MODE for reference in other.references):
            return None
    return path
