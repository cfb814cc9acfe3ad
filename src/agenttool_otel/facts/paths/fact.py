"""One path argument, as a fact."""

from __future__ import annotations

import os
import pathlib
import stat
import unicodedata
from typing import Any, Final

from agenttool_otel.facts.paths.places import clean, real_roots, sensitive_place, within
from agenttool_otel.facts.paths.resolve import Resolution, resolve
from agenttool_otel.facts.paths.text import MAX_PATH_BYTES, PathText, normalize_path, read_path_text
from agenttool_otel.facts.types import FactEnvironment, PathFact, unestablished
from agenttool_otel.names import PathRejection, WindowsForm
from agenttool_otel.values.unicode import escape_surrogates

_UNREADABLE: Final = frozenset(
    {PathRejection.NOT_TEXT, PathRejection.EMPTY, PathRejection.NUL, PathRejection.SURROGATE, PathRejection.TOO_LONG}
)
_ELSEWHERE: Final = frozenset({WindowsForm.DRIVE, WindowsForm.UNC, WindowsForm.DEVICE})


def path_fact(value: Any, *, argument: str, access: str, env: FactEnvironment, inferred: bool = False) -> PathFact:
    """Say what a path argument means; never raises, and takes bounded time on any value."""
    fact: PathFact = unestablished("path", argument, inferred=inferred, access=access)
    try:
        _establish(value, fact, env)
    except Exception:  # a fact that fails must look dangerous, not stop the decision
        fact.update({"rejected": PathRejection.INTERNAL.value, "inside": False, "certain": False, "roots": []})
    return fact


def path_text_of(value: Any) -> str | None:
    """Return the text of a path value, or ``None`` when it is neither text nor a pathlib path.

    Other path-like objects are not asked, because that would run their code.
    """
    if type(value) is str:
        return value
    if isinstance(value, pathlib.PurePath):
        return str(value)
    return str.__str__(value) if isinstance(value, str) else None


def _establish(value: Any, fact: PathFact, env: FactEnvironment) -> None:
    text = path_text_of(value)
    if text is None:
        fact["rejected"] = PathRejection.NOT_TEXT.value
        return
    fact["raw"] = escape_surrogates(text[:MAX_PATH_BYTES])
    read = read_path_text(text)
    fact["parent_refs"] = read.parent_refs
    fact["home"] = read.home
    fact["variables"] = read.variables
    fact["encoded"] = read.encoded
    fact["confusable"] = read.confusable
    fact["windows"] = [str(form.value) if isinstance(form, WindowsForm) else form for form in read.windows]
    if read.rejected is not None:
        fact["rejected"] = read.rejected.value
        if read.rejected in _UNREADABLE:
            return
    start, parts, known = _start_of(read, env)
    fact["lexical"] = lexical = normalize_path(parts, start=start)
    _place(lexical, start, parts, read, known, fact, env)


def _start_of(read: PathText, env: FactEnvironment) -> tuple[str, list[str], bool]:
    """Return the directory that the components start from, the components, and whether the start is known."""
    if read.absolute:
        return "/", read.parts, True
    if read.home:
        home = env.home if env.home is not None else os.path.expanduser("~")
        # Another user's home is in a database that may be remote; asking it is not a fact's business.
        known = read.parts[0] == "~" and home.startswith("/")
        return (home, read.parts[1:], True) if known else ("/home", [read.parts[0][1:], *read.parts[1:]], False)
    cwd = env.cwd
    if cwd is None:
        try:
            cwd = os.getcwd()
        except OSError:
            return "/", read.parts, False
    return cwd, read.parts, cwd.startswith("/")


def _place(
    lexical: str, start: str, parts: list[str], read: PathText, known: bool, fact: PathFact, env: FactEnvironment
) -> None:
    lexical_roots = [root for root in env.roots if within(lexical, clean(root))]
    if read.home:
        # A tool that does not know "~" would use a directory of that name below the current one.
        literal = normalize_path(read.parts, start=env.cwd or "/")
        known = known and any(within(literal, clean(root)) for root in env.roots)
    readings: list[Resolution] = []
    if env.touch_file_system:
        readings = _readings(lexical, start, parts, read)
        _describe(readings, fact, read, parts, start)
        _compare_with_roots(readings, lexical, lexical_roots, fact, env)
    else:
        fact["roots"] = lexical_roots
        fact["inside"] = bool(lexical_roots)
    elsewhere = not known or any(form in _ELSEWHERE for form in read.windows)
    if elsewhere or (WindowsForm.BACKSLASH in read.windows and read.parent_refs):
        fact["inside"] = False
        fact["roots"] = []
    elif fact["rejected"] is not None:
        fact["inside"] = False
    fact["sensitive"] = sensitive_place(lexical, readings, fact["access"], env)
    fact["certain"] = (
        known
        and not read.ambiguous
        and fact["rejected"] is None
        and bool(readings)
        and readings[0].path is not None
        and all(found.path == readings[0].path and not found.magic for found in readings)
    )


def _readings(lexical: str, start: str, parts: list[str], read: PathText) -> list[Resolution]:
    """Return where the path leads: as the kernel and ``realpath`` walk it and, where that may differ, by its text.

    Many programs normalise a path before they open it (``abspath``, ``path.resolve``, ``filepath.Clean``). Behind a
    link or a name that is not there, ``..`` then leads elsewhere.
    """
    walked = resolve(parts, start=start)
    return [walked, resolve([], start=lexical)] if read.parent_refs else [walked]


def _compare_with_roots(
    readings: list[Resolution], lexical: str, lexical_roots: list[str], fact: PathFact, env: FactEnvironment
) -> None:
    """Say which roots every reading of the path lies in."""
    if any(found.path is None or found.loop for found in readings):
        return
    # A root may be given by a link's name; what counts is where both really are.
    roots = list(zip(env.roots, real_roots(env), strict=True))
    common = [root for root, real in roots if all(within(found.path or "", real) for found in readings)]
    named = bool(lexical_roots) or any(within(lexical, real) for _, real in roots)
    fact["roots"] = common
    fact["inside"] = bool(common) and named
    fact["escapes"] = named and not common


def _describe(readings: list[Resolution], fact: PathFact, read: PathText, parts: list[str], start: str) -> None:
    found = readings[0]
    fact["resolved"] = found.path if found.path is None else escape_surrogates(found.path)
    fact["exists"] = found.exists
    fact["symlink"] = any(reading.symlink for reading in readings)
    fact["identity"] = found.identity
    rejected: PathRejection | None = None
    if any(reading.loop for reading in readings):
        rejected = PathRejection.LOOP
    for reading in readings:
        if not reading.exists or reading.status is None:
            continue
        mode = reading.status.st_mode
        if stat.S_ISREG(mode):
            fact["hard_links"] = max(reading.status.st_nlink, fact["hard_links"] or 0)
        elif not stat.S_ISDIR(mode):
            rejected = rejected or PathRejection.SPECIAL_FILE
    if read.unnormalized and (not found.exists or _has_composed_twin(parts, start)):
        # Which of two equal-looking names a tool reaches depends on the file system; see Unicode's NFC.
        rejected = rejected or PathRejection.NOT_NORMALIZED
    if rejected is not None and fact["rejected"] is None:
        fact["rejected"] = rejected.value


def _has_composed_twin(parts: list[str], start: str) -> bool:
    composed = [unicodedata.normalize("NFC", part) for part in parts]
    return resolve(composed, start=start).exists is not False
