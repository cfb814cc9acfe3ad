"""Doors of other distributions, found by entry point: what governs the tool objects of a framework.

A distribution names in its entry points of the group ``agenttool_otel.doors`` a class of tools and
the function that governs one::

    [project.entry-points."agenttool_otel.doors"]
    "toy.ToyTool" = "agenttool_toy:govern_toy"

The function takes the tool, the Governor (``None`` for the default one) and what was stated of the
tool, and returns the governed tool. It is imported when an object of the class is governed; one
that can't be used is refused there, and no other door is affected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import AgentToolError, ConfigurationError
from agenttool_otel.values.inspection import mro_names

DOOR_GROUP: Final = "agenttool_otel.doors"
"""The group of the entry points."""

Door = Callable[[Any, Runtime | None, GovernOptions], Any]


class InstalledDoor(NamedTuple):
    """A door that a distribution brings."""

    class_name: str  # qualified name of the class whose objects it governs
    function: str  # where the function is, as ``module:name``
    distribution: str  # name and version


def installed_doors() -> list[InstalledDoor]:
    """Return the doors of all installed distributions, by class; none of them is imported."""
    found = [
        InstalledDoor(name, entry.value, _distribution(entry))
        for name, entries in _by_class().items()
        for entry in entries
    ]
    return sorted(found)


def find_door(target: Any) -> Door | None:
    """Return the door of an object; ``None`` where no distribution has one for its class.

    Args:
        target: a tool object of a framework, or any callable.

    Raises:
        ConfigurationError: two distributions have a door for its class, or the door can't be used.
    """
    # plain functions are most of what is governed: for them no distribution is searched
    if inspect.isroutine(target) or isinstance(target, (type, partial, classmethod, staticmethod)):
        return None
    return _door_of(mro_names(type(target)))


def _door_of(class_names: Iterable[str]) -> Door | None:
    by_class = _by_class()
    for class_name in class_names:
        entries = by_class.get(class_name, ())
        if len(entries) > 1:
            places = " and ".join(sorted(_named(entry) for entry in entries))
            raise ConfigurationError(f"{class_name} has two doors: {places}; uninstall one")
        if entries:
            return partial(_pass, entries[0])
    return None


@lru_cache(maxsize=1)
def _by_class() -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=DOOR_GROUP):
        entries = found.setdefault(entry.name, [])
        # a distribution may stand on the path twice, as where it is installed and where it is made
        if all(entry.value != other.value for other in entries):
            entries.append(entry)
    return found


def _pass(entry: EntryPoint, target: Any, governor: Runtime | None, options: GovernOptions) -> Any:
    """Govern an object by a door, and refuse it where the door fails."""
    try:
        governed = entry.load()(target, governor, options)
    except AgentToolError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"the door {_named(entry)} can't be used: {type(error).__name__}"
        ) from error
    if governed is None:
        raise ConfigurationError(f"the door {_named(entry)} returned no tool")
    return governed


def _named(entry: EntryPoint) -> str:
    return f"{entry.value} ({_distribution(entry)})"


def _distribution(entry: EntryPoint) -> str:
    if entry.dist is None:
        return "of no distribution"
    return f"{entry.dist.name} {entry.dist.version}"
