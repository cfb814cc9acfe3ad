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
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
}
"""What shows no more than ``lscpu``, ``free``, ``uptime`` and ``uname`` do; to read it is to read no
place.
"""
_ENDLESS = _DEVICES - {"/dev/null", "/dev/stdin"}
_DESCRIPTOR = re.compile(r"/dev/fd/[0-9]{1,4}\Z")
_WILD = frozenset("*?[")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]")
_CLASS = re.compile(r"\[[!^]?[^\]]*?\[([:.=]).*?\1\][^\]]*\]")


def joined(directory: str, path: str) -> str:
    """Return a path as seen from a directory."""
    if not directory or path.startswith(("/", "~")):
        return path
    return f"{directory}/{path}"


def entered(directories: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Return the directories that a line may stand in behind a ``cd``.

    The old ones stay: the ``cd`` may fail, stand in a subshell or a pipe, or be skipped by ``||``.
    """
    # as keys, for their order
    places = dict.fromkeys(directories)
    for directory in directories:
        places[joined(directory, target or "~")] = None
    return tuple(places)


def simple_glob(component: str) -> str:
    """Return a component whose bracket expressions with classes, which differ between locales,
    match any one character.
    """
    if _opens_class(component):
        component = _CLASS.sub("?", component)
        # not closed as expected: everything behind its bracket may match anything
        if _opens_class(component):
            component = component[: component.find("[")] + "*"
    return component.replace("[^", "[!")


def _opens_class(component: str) -> bool:
    """Whether a class such as ``[:alpha:]``, ``[.a.]`` or ``[=a=]`` begins in a component."""
    return any(start in component for start in ("[:", "[.", "[="))


def may_match(component: str, name: str) -> bool:
    """Whether a component is a name, or a glob that can match it; without regard to case."""
    component = component.casefold()
    if component == name:
        return True
    if _WILD.isdisjoint(component):
        return False
    if component.count("*") > 6 or len(component) > 128:
        return True  # long runs of stars make matching slow
    return fnmatchcase(name, simple_glob(component))


def climbs(component: str) -> bool:
    """Whether a component is ``..``, or a glob that older shells replace by it."""
    return component.startswith(".") and may_match(component, "..")


def absolute_readings(path: str) -> list[str]:
    """Return the places from the root that a path may name.

    A relative path that climbs may climb to the root, and ``..`` behind a link leads to where the
    link points, so what stands behind any ``..`` may be a path from the root. A path that does not
    climb from an unknown directory has no such reading.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    readings = []
    if path.startswith("/"):
        readings.append(_from_root(parts))
    for index in range(1, len(parts)):
        # ../../etc/shadow
        if not climbs(parts[index - 1]) or climbs(parts[index]):
            continue
        place = _from_root(parts[index:])
        readings.append(place)
        # ~/../me/.ssh
        if parts[0] == "~":
            readings.append("/home" + place)
    return readings


def _from_root(parts: list[str]) -> str:
    return posixpath.normpath("/" + "/".join(parts))


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
    # /proc/self/root/dev/sda
    below = parts[1:]
    if may_match(first, "proc") and any(may_match(part, "dev") for part in below):
        return "device file"
    if not may_match(first, "dev"):
        return ""
    if len(parts) == 1:
        return "directory of devices" if deep else ""
    if first.casefold() != "dev":
        # ../d*/a.py, beside the current directory: no device has a suffix
        name = parts[1]
        if climbed and "[" not in name and _SUFFIX.search(name):
            return ""
        return "glob that may name a device"
    if place in _ENDLESS:
        return "device without an end"
    if is_harmless_device(place):
        return ""
    return "device file"


def is_harmless_device(path: str) -> bool:
    """Whether a path is a device that opening, reading or writing leaves as it is."""
    if path in _DEVICES:
        return True
    return _DESCRIPTOR.match(path) is not None
