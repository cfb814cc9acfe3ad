"""Which tools a hook is for: by name or id, namespace and kind, each as a case-sensitive glob."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agenttool_otel.errors import ConfigurationError

__all__ = ["Matcher", "ToolFacts", "patterns"]


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What of a tool is matched on.

    Attributes:
        tool_id: its id.
        names: its name and aliases: a hook on an alias is a hook on the tool.
        namespace: its namespace.
        kind: its kind.
    """

    tool_id: str
    names: tuple[str, ...]
    namespace: str
    kind: str


@dataclass(frozen=True, slots=True)
class Matcher:
    """All that is stated must match; of several patterns in one place, one must.

    Attributes:
        tool: patterns on id, name or an alias.
        namespace: patterns on the namespace.
        kind: patterns on the kind.
    """

    tool: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()

    def matches(self, facts: ToolFacts) -> bool:
        """Tell whether a hook is for a tool.

        Args:
            facts: the tool.
        """
        return (
            _any(self.tool, (facts.tool_id, *facts.names))
            and _any(self.namespace, (facts.namespace,))
            and _any(self.kind, (facts.kind,))
        )

    def to_json_object(self) -> dict[str, list[str]]:
        """Return what is stated, as data of a hook record."""
        stated = {"tool": self.tool, "namespace": self.namespace, "kind": self.kind}
        return {name: list(globs) for name, globs in stated.items() if globs}


def _any(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    return not globs or any(fnmatchcase(value, glob) for glob in globs for value in values)


def patterns(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Read what was given as one glob or several.

    Args:
        name: the place, for the error.
        given: a glob, several, or nothing for "any".

    Raises:
        ConfigurationError: no text; an empty one, or an empty list, would silently match nothing or everything.
    """
    if given is None:
        return ()
    globs = (given,) if isinstance(given, str) else tuple(given)
    if not globs or not all(isinstance(glob, str) and glob for glob in globs):
        raise ConfigurationError(f"{name} is a pattern or a list of patterns")
    return globs
