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
        """Return whether a hook is for a tool."""
        if self.tool and not _any(self.tool, (facts.tool_id, *facts.names)):
            return False
        if self.namespace and not _any(self.namespace, (facts.namespace,)):
            return False
        return not self.kind or _any(self.kind, (facts.kind,))

    def to_json_object(self) -> dict[str, list[str]]:
        """Return what is stated, as data of a hook record."""
        stated: dict[str, list[str]] = {}
        if self.tool:
            stated["tool"] = list(self.tool)
        if self.namespace:
            stated["namespace"] = list(self.namespace)
        if self.kind:
            stated["kind"] = list(self.kind)
        return stated


def _any(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    # "local.*" matches the id "local.files.read_file"; case counts on every platform
    return any(fnmatchcase(value, glob) for value in values for glob in globs)


def patterns(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return what was given as globs.

    Args:
        name: the option, for the error's message.
        given: one glob, or several.

    Raises:
        ConfigurationError: an empty list or an empty glob, which would match nothing.
    """
    if given is None:
        return ()
    globs = (given,) if isinstance(given, str) else tuple(given)
    for glob in globs:
        if not isinstance(glob, str) or not glob:
            raise ConfigurationError(f"{name} is a pattern or a list of patterns")
    if not globs:
        raise ConfigurationError(f"{name} is a pattern or a list of patterns")
    return globs
