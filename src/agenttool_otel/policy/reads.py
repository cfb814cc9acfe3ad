"""Which parts of the input can a decision depend on? Proven from the policy's syntax tree, or not claimed.

Every access to the input starts at the word ``input`` (or an import of a part of it), so the set of constant prefixes
after that word, over all rules that the entry point can reach, covers whatever is read: a value that is passed on,
iterated or indexed with a computed key lies below its prefix. Nothing is claimed for ``with``, for builtins whose
answer depends on more than their arguments, and where the input is used as a whole.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agenttool_otel.policy.builtins import NONDETERMINISTIC
from agenttool_otel.policy.rego import Path, Program

__all__ = ["VOLATILE", "ReadSet", "read_set"]

VOLATILE: Final[tuple[Path, ...]] = (("time",), ("invocation", "id"), ("invocation", "native_call_id"))
"""Input paths that differ in every call: a policy that reads one is not cached."""


class ReadSet(NamedTuple):
    """Input paths that an entry point can read, none below another.

    Attributes:
        typed: paths whose shape the input's schema fixes.
        arguments: paths into ``input.input``, which holds whatever a model wrote.
    """

    typed: tuple[Path, ...]
    arguments: tuple[Path, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return self.typed + self.arguments


def read_set(program: Program, entry: Path) -> ReadSet | None:
    """Find the input paths that an entry point can read.

    Args:
        program: all modules of the bundle.
        entry: path of the entry point below ``data``.

    Returns:
        ``None`` when the answer may depend on anything else.
    """
    paths: set[Path] = set()
    for rule in program.reachable(entry):
        if rule.has_with or any(call.name in NONDETERMINISTIC for call in rule.calls):
            return None
        for reference in rule.references:
            if reference.base == "input":
                if not reference.path:
                    return None
                paths.add(reference.path)
    minimal = tuple(sorted(path for path in paths if not any(path[:size] in paths for size in range(1, len(path)))))
    for volatile in VOLATILE:
        if any(path[: len(volatile)] == volatile[: len(path)] for path in minimal):
            return None
    return ReadSet(
        typed=tuple(path for path in minimal if path[0] != "input"),
        arguments=tuple(path for path in minimal if path[0] == "input"),
    )
