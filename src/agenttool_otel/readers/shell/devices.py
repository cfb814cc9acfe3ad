"""Which devices and wide directories a path may reach, by its text."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase

MAX_DIRECTORIES = 64
"""More places than this are not followed; the caller ends the proof."""

_DEVICES = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full", "/dev/tty"}
)
SYSTEM_FACTS = {
    "/etc/os-release",
    *map("/proc/{}".format, ("cpuinfo", "meminfo", "loadavg", "uptime", "version")),
}
"""What says no more than ``lscpu``, ``free``, ``uptime`` and ``uname`` do; to read it is to read no
place.
"""
_ENDLESS = _DEVICES - {"/dev/null", "/dev/stdin"}
_DESCRIPTOR = re.compile(r"/dev/fd/[0-9]{1,4}\Z")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]")
_CLASS = re.compile(r"\[[!^]?[^\]]*?\[([:.=]).*?\1\][^\]]*\]")


def joined(directory: str, path: str) -> str:
    """A path as seen from a directory."""
    return path if path.startswith(("/", "~")) or not directory else f"{directory}/{path}"


def entered(directories: tuple[str, ...], target: str) -> tuple[str, ...]:
    """The directories that a line may stand in behind a ``cd``.

    The old ones stay: the ``cd`` may fail, stand in a subshell or a pipe, or be skipped by ``||``.
    """
    return tuple(
        dict.fromkeys(
            [*directories, *(joined(directory, target or "~") for directory in directories)]
        )
    )


def simple_glob(component: str) -> str:
    """A component whose bracket expressions with classes, which differ between locales, match any
    one character.
    """
    if "[:" in component or "[." in component or "[=" in component:
        component = _CLASS.sub("?", component)
        cut = min(
            (
                i
                for i in (component.find("[:"), component.find("[."), component.find("[="))
                if i >= 0
            ),
            default=-1,
        )
        if cut >= 0:  # not closed as expected: everything behind its bracket may match anything
            component = component[: component.find("[")] + "*"
    return component.replace("[^", "[!")


def may_match(component: str, name: str) -> bool:
    """Whether a component is a name, or a glob that can match it; without regard to case."""
    component = component.casefold()
    if component == name or not any(char in component for char in "*?["):
        return component == name
    if component.count("*") > 6 or len(component) > 128:
        return True  # long runs of stars make matching slow
    return fnmatchcase(name, simple_glob(component))


def climbs(component: str) -> bool:
    """Whether a component is ``..``, or a glob that older shells replace by it."""
    return component.startswith(".") and may_match(component, "..")


def absolute_readings(path: str) -> list[str]:
    """The places from the root that a path may name.

    A relative path that climbs may climb to the root, and ``..`` behind a link leads to where the
    link points, so what stands behind any ``..`` may be a path from the root. A path that does not
    climb from an unknown directory has no such reading.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    readings = [posixpath.normpath("/" + "/".join(parts))] if path.startswith("/") else []
    for index in range(1, len(parts)):
        if climbs(parts[index - 1]) and not climbs(parts[index]):
            rest = posixpath.normpath("/" + "/".join(parts[index:]))
            readings.append(rest)
            if parts[0] == "~":
                readings.append("/home" + rest)
    return readings


def device_reason(path: str, *, deep: bool) -> str:
    """Why reading a path may reach a device or the network, or ``""``: opening some devices has
    effects.
    """
    for position, place in enumerate(absolute_readings(path)):
        climbed = position > 0 or not path.startswith("/")
        reason = _place_reason(place, deep=deep, climbed=climbed)
        if reason:
            return reason
    return ""


def _place_reason(place: str, *, deep: bool, climbed: bool) -> str:
    """Return why reading a place from the root may reach a device or the network."""
    parts = place.split("/")[1:]
    first = parts[0]
    if first.casefold().startswith("inet"):
        return "network file"
    if may_match(first, "proc") and any(may_match(part, "dev") for part in parts[1:]):
        return "device file"  # through /proc/self/root
    if not may_match(first, "dev"):
        return ""
    if len(parts) == 1:
        return "directory of devices" if deep else ""
    if first.casefold() != "dev":
        # A sibling of the directory that one stands in: no device has a suffix.
        is_sibling = climbed and "[" not in parts[1] and _SUFFIX.search(parts[1])
        return "" if is_sibling else "glob that may name a device"
    if place in _ENDLESS:
        return "device without an end"
    return "" if is_harmless_device(place) else "device file"


def is_harmless_device(path: str) -> bool:
    """Whether a path is a device that opening, reading or writing leaves as it is."""
    return path in _DEVICES or _DESCRIPTOR.match(path) is not None
