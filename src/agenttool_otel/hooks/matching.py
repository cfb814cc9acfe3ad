"""Which tools a hook is for: by name or id, namespace and kind, each as a case-sensitive glob."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from agenttool_otel.errors import ConfigurationError


class ToolFacts(NamedTuple):
    """What of a tool is matched on."""

    tool_id: str  # its id
    names: tuple[str, ...]  # its name and aliases: a hook on an alias is a hook on the tool
    namespace: str  # its namespace
    kind: str  # its kind


class Matcher(NamedTuple):
    """All that is stated must match; of several patterns in one place, one must."""

    tool: tuple[str, ...] = ()  # patterns on id, name or an alias
    namespace: tuple[str, ...] = ()  # patterns on the namespace
    kind: tuple[str, ...] = ()  # patterns on the kind

    def matches(self, facts: ToolFacts) -> bool:
        """Tell whether a hook is for a tool."""
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
    """Read what was given as one glob or several."""
    if given is None:
        return ()
    globs = (given,) if isinstance(given, str) else tuple(given)
    if not globs or not all(isinstance(glob, str) and glob for glob in globs):
        raise ConfigurationError(f"{name} is a pattern or a list of patterns")
    return globs
