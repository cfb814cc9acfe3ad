"""One path argument, as a fact."""

from __future__ import annotations

import os
import pathlib
import stat
import unicodedata
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.facts.environment import FactEnvironment
from agenttool_otel.facts.lettering import escape_surrogates_in
from agenttool_otel.facts.paths.resolve import Resolution, resolve
from agenttool_otel.facts.paths.sensitive import sensitive_class
from agenttool_otel.facts.paths.text import MAX_PATH_BYTES, PathText, normalize_path, read_path_text
from agenttool_otel.facts.types import PathFact
from agenttool_otel.names import PathAccess, PathClass, PathRejection, WindowsForm

__all__ = ["empty_path_fact", "path_fact", "path_text_of", "within"]

_RANK: Final = {kind.value: index for index, kind in enumerate(PathClass)}
_UNREADABLE: Final = frozenset(
    {PathRejection.NOT_TEXT, PathRejection.EMPTY, PathRejection.NUL, PathRejection.SURROGATE, PathRejection.TOO_LONG}
)
_NOWHERE: Final = "/\0"
"""What no path lies in: stands for a root that is not absolute or can't be read. A Windows root is never absolute here,
so nothing is inside there."""

_ELSEWHERE: Final = frozenset({WindowsForm.DRIVE, WindowsForm.UNC, WindowsForm.DEVICE})


def path_fact(value: Any, *, argument: str, access: str, env: FactEnvironment, inferred: bool = False) -> PathFact:
    """Say what a path argument means; never raises, and takes bounded time on any value.

    Args:
        value: the argument: text or a pathlib path; anything else gives a fact with ``rejected`` ``not_text``.
        argument: JSON pointer of the argument.
        access: ``read``, ``write`` or ``unknown``.
        env: the call's surroundings.
        inferred: whether it was guessed that this argument is a path.
    """
    fact = empty_path_fact(argument, access, inferred)
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


def empty_path_fact(argument: str, access: str, inferred: bool) -> PathFact:
    """Return a fact that nothing was established for, which is the dangerous case."""
    return {
        "argument": argument,
        "raw": "",
        "access": access,
        "lexical": "",
        "resolved": None,
        "roots": [],
        "inside": False,
        "escapes": False,
        "exists": None,
        "symlink": False,
        "hard_links": None,
        "parent_refs": False,
        "home": False,
        "variables": False,
        "encoded": False,
        "confusable": False,
        "windows": [],
        "sensitive": None,
        "rejected": None,
        "identity": None,
        "certain": False,
        "inferred": inferred,
    }


def _establish(value: Any, fact: PathFact, env: FactEnvironment) -> None:
    text = path_text_of(value)
    if text is None:
        fact["rejected"] = PathRejection.NOT_TEXT.value
        return
    fact["raw"] = escape_surrogates_in(text[:MAX_PATH_BYTES])
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
    lexical_roots = [root for root in env.roots if within(lexical, _clean(root))]
    if read.home:
        # A tool that does not know "~" would use a directory of that name below the current one.
        literal = normalize_path(read.parts, start=env.cwd or "/")
        known = known and any(within(literal, _clean(root)) for root in env.roots)
    found: Resolution | None = None
    if env.touch_file_system:
        found = resolve(parts, start=start)
        _describe(found, fact, read, parts, start)
        if found.path is not None and not found.loop:
            # A root may be given by a link's name; what counts is where both really are.
            real = [root for root in env.roots if within(found.path, _real_root(root))]
            fact["roots"] = real
            fact["inside"] = bool(real) and (bool(lexical_roots) or _named_really(lexical, env))
            fact["escapes"] = bool(lexical_roots) and not real
    else:
        fact["roots"] = lexical_roots
        fact["inside"] = bool(lexical_roots)
    elsewhere = not known or any(form in _ELSEWHERE for form in read.windows)
    if elsewhere or (WindowsForm.BACKSLASH in read.windows and read.parent_refs):
        fact["inside"] = False
        fact["roots"] = []
    elif fact["rejected"] is not None:
        fact["inside"] = False
    fact["sensitive"] = _sensitive(lexical, found, fact, env)
    fact["certain"] = (
        known
        and not read.ambiguous
        and fact["rejected"] is None
        and found is not None
        and found.path is not None
        and not found.magic
    )


def _describe(found: Resolution, fact: PathFact, read: PathText, parts: list[str], start: str) -> None:
    fact["resolved"] = found.path if found.path is None else escape_surrogates_in(found.path)
    fact["exists"] = found.exists
    fact["symlink"] = found.symlink
    fact["identity"] = found.identity
    rejected: PathRejection | None = None
    if found.loop:
        rejected = PathRejection.LOOP
    elif found.exists and found.status is not None:
        mode = found.status.st_mode
        if stat.S_ISREG(mode):
            fact["hard_links"] = found.status.st_nlink
        elif not stat.S_ISDIR(mode):
            rejected = PathRejection.SPECIAL_FILE
    if read.unnormalized and (not found.exists or _has_composed_twin(parts, start)):
        # Which of two equal-looking names a tool reaches depends on the file system; see Unicode's NFC.
        rejected = rejected or PathRejection.NOT_NORMALIZED
    if rejected is not None and fact["rejected"] is None:
        fact["rejected"] = rejected.value


def _has_composed_twin(parts: list[str], start: str) -> bool:
    composed = [unicodedata.normalize("NFC", part) for part in parts]
    return resolve(composed, start=start).exists is not False


def _named_really(lexical: str, env: FactEnvironment) -> bool:
    """Return whether the text names a root by its real path, although the root was given by a link's name."""
    return any(within(lexical, _real_root(root)) for root in env.roots)


def _real_root(root: str) -> str:
    # Not cached: a root that was swapped for a link must be seen at the very next call.
    return (resolve([], start=root).path if root.startswith("/") else None) or _NOWHERE


@lru_cache(maxsize=256)
def _clean(path: str) -> str:
    return normalize_path([], start=path) if path.startswith("/") else _NOWHERE


def within(path: str, root: str) -> bool:
    """Return whether a normalised absolute path is a normalised absolute directory or lies below it."""
    if path == root or root == "/":
        return True
    return path.startswith(root) and path[len(root)] == "/"


def _sensitive(lexical: str, found: Resolution | None, fact: PathFact, env: FactEnvironment) -> str | None:
    kinds = [_protected(path, found, fact, env) for path in {lexical, found.path if found and found.path else lexical}]
    root = next((_clean(root) for root in env.roots if within(lexical, _clean(root))), None)
    kinds.append(sensitive_class(lexical, root))
    if found is not None and found.path is not None and found.path != lexical:
        real = next((real for real in map(_real_root, env.roots) if within(found.path, real)), None)
        kinds.append(sensitive_class(found.path, real))
    named = [kind for kind in kinds if kind is not None]
    return min(named, key=lambda kind: _RANK.get(kind, -1)) if named else None


def _protected(path: str, found: Resolution | None, fact: PathFact, env: FactEnvironment) -> str | None:
    if not env.protected:
        return None
    folded = path.casefold()
    for place, kind in env.protected:
        clean = _clean(place)
        if within(folded, clean.casefold()):
            return kind
        # Removing, renaming or replacing a directory changes what it holds.
        if fact["access"] != PathAccess.READ and within(clean, path) and path not in map(_clean, env.roots):
            return kind
        if not env.touch_file_system:
            continue
        real = resolve([], start=clean)
        if real.path is None:
            continue
        if within(folded, real.path.casefold()):
            return kind
        if found is not None and found.exists and real.exists and found.identity == real.identity:
            return kind
    return None
