"""One path argument, as a fact: what its text means, where it leads, and whether that place
deserves care.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from functools import lru_cache
from itertools import product, repeat, starmap
from typing import Any, Final

from agenttool_otel.readers.paths.content import holds_secret
from agenttool_otel.readers.paths.repositories import in_bare_repository
from agenttool_otel.readers.paths.resolve import Resolution, resolve
from agenttool_otel.readers.paths.sensitive import sensitive_class
from agenttool_otel.readers.paths.text import (
    MAX_PATH_BYTES,
    PathText,
    normalize_path,
    read_path_text,
)
from agenttool_otel.readers.types import PathFact, Surroundings, unestablished
from agenttool_otel.readers.vocabulary import PathAccess, PathClass, PathRejection, WindowsForm
from agenttool_otel.values.inspection import path_text_of
from agenttool_otel.values.unicode import escape_surrogates

_UNREADABLE: Final = frozenset(
    {
        PathRejection.NOT_TEXT,
        PathRejection.EMPTY,
        PathRejection.NUL,
        PathRejection.SURROGATE,
        PathRejection.TOO_LONG,
    }
)
_ELSEWHERE: Final = frozenset({WindowsForm.DRIVE, WindowsForm.UNC, WindowsForm.DEVICE})
_PLAIN: Final = (None, PathClass.DOTFILE, PathClass.AGENT_CONFIG)
_RANK: Final = {kind.value: index for index, kind in enumerate(PathClass)}
_NOTHING: Final[PathFact] = unestablished("path", "", inferred=False)
_NOWHERE: Final = "/\0"
"""What no path lies in: stands for a root that is not absolute or can't be read. A Windows root is
never absolute here, so nothing is inside there.
"""


def real_root(root: str, env: Surroundings | None = None) -> str:
    """Return where a root really is, or what no path lies in.

    Args:
        root: the root.
        env: the call's surroundings, which may know it already.
    """
    if not root.startswith("/"):
        return _NOWHERE
    known = None if env is None else env.looked_up
    if known is not None and root in known:
        return known[root][0] or _NOWHERE
    real = resolve([], start=root)
    if known is not None:
        known[root] = (real.path, real.identity if real.exists else None)
    return real.path or _NOWHERE


def real_roots(env: Surroundings) -> tuple[str, ...]:
    """Return where the roots really are, in their order."""
    if env.real_roots is not None:
        return env.real_roots
    return tuple(map(real_root, env.roots, repeat(env)))


@lru_cache(maxsize=256)
def clean(path: str) -> str:
    """Return an absolute path normalised by its text, or what no path lies in."""
    return normalize_path([], start=path) if path.startswith("/") else _NOWHERE


def within(path: str, root: str) -> bool:
    """Return whether a normalised absolute path is a normalised absolute directory or lies
    below it.
    """
    if path == root or root == "/":
        return True
    return path.startswith(root) and path[len(root)] == "/"


def path_fact(
    value: object,
    argument: str = "",
    surroundings: Surroundings | None = None,
    *,
    access: str = PathAccess.UNKNOWN.value,
    inferred: bool = False,
) -> PathFact:
    """Return what a path means; never raises, and takes bounded time on any value.

    Args:
        value: the path, as text or as a ``pathlib`` path.
        argument: the JSON pointer of the path, which the fact repeats.
        surroundings: the roots, the directory that a relative path starts from, home, and what is
            protected. Without any, no path is inside of a root.
        access: what is done with it: ``read``, ``write`` or ``unknown``.
        inferred: whether no declaration names this text as a path; the fact repeats it.

    Returns:
        What is uncertain is dangerous: ``certain`` is false where readers may take the text for
        different files, where a directory can't be read, or where the file system may not be
        looked at (``Surroundings.read_file_system``). A value that is no usable path has
        ``rejected``, and is not ``inside``.
    """
    env = surroundings or Surroundings()
    fact: PathFact = {**_NOTHING, "argument": argument, "access": access, "inferred": inferred}
    fact["roots"], fact["windows"] = [], []
    try:
        _establish(value, fact, env)
    except Exception:  # a fact that fails must look dangerous, not stop the decision
        fact.update(
            {
                "rejected": PathRejection.INTERNAL.value,
                "inside": False,
                "certain": False,
                "roots": [],
            }
        )
    return fact


def _establish(value: Any, fact: PathFact, env: Surroundings) -> None:
    text = value if type(value) is str else path_text_of(value)
    if text is None:
        fact["rejected"] = PathRejection.NOT_TEXT.value
        return
    raw = text[:MAX_PATH_BYTES]
    fact["raw"] = raw if raw.isascii() else escape_surrogates(raw)
    read = read_path_text(text)
    _copy_text(read, fact)
    if read.rejected in _UNREADABLE:
        return
    start, parts, known = _start_of(read, env)
    lexical = normalize_path(parts, start=start)
    fact["lexical"] = lexical
    roots = [root for root in env.roots if within(lexical, clean(root))]
    readings = _readings(read, parts, start, lexical, env)
    paths = [found.path for found in readings if found.path is not None]
    if not readings:
        fact["roots"] = roots
        fact["inside"] = bool(roots)
    else:
        _describe(readings, fact, read, parts, start)
        if len(paths) == len(readings):
            _compare_with_roots(paths, lexical, bool(roots), fact, env)
    # Windows would look in another place: C:x, a\..\..\b
    climbs = read.parent_refs and WindowsForm.BACKSLASH in read.windows
    if climbs or not known or not _ELSEWHERE.isdisjoint(read.windows):
        fact["roots"] = []
    if not fact["roots"] or fact["rejected"] is not None:
        fact["inside"] = False
    places = {lexical, *paths}
    fact["sensitive"] = _sensitive_place(lexical, roots, readings, places, fact["access"], env)
    if _shows_secret(fact, readings):
        fact["sensitive"] = PathClass.CONTENT.value
    is_ambiguous = any((read.variables, read.windows, fact["rejected"]))
    fact["certain"] = known and not is_ambiguous and _agree(readings)


def _copy_text(read: PathText, fact: PathFact) -> None:
    fact["parent_refs"] = read.parent_refs
    fact["home"] = read.home
    fact["variables"] = read.variables
    fact["encoded"] = read.encoded
    fact["confusable"] = read.confusable
    fact["windows"] = list(map(str, read.windows))
    if read.rejected is not None:
        fact["rejected"] = read.rejected.value


def _readings(
    read: PathText,
    parts: list[str],
    start: str,
    lexical: str,
    env: Surroundings,
) -> list[Resolution]:
    """Return where a path leads, for each way in which programs read it."""
    if not env.read_file_system:
        return []
    readings = [resolve(parts, start=start)]
    if read.parent_refs:
        # Many programs normalise a path before they open it (abspath, path.resolve,
        # filepath.Clean). Behind a link or a name that is not there, ".." then leads elsewhere than
        # where the kernel and realpath go.
        readings.append(resolve([], start=lexical))
    return readings


def _shows_secret(fact: PathFact, readings: list[Resolution]) -> bool:
    """Return whether a file with a secret would be read, of which nothing worse is known."""
    if fact["access"] != PathAccess.READ or not fact["inside"]:
        return False
    if fact["sensitive"] not in _PLAIN:
        return False
    for found in readings:
        if not found.exists or found.status is None:
            continue
        if holds_secret(found.path or "", found.status):
            return True
    return False


def _agree(readings: list[Resolution]) -> bool:
    """Return whether all readings of a path lead to one place that is known."""
    if not readings:
        return False
    first = readings[0]
    last = readings[-1]
    if first.magic or last.magic or first.path is None:
        return False
    return first.path == last.path


def _start_of(read: PathText, env: Surroundings) -> tuple[str, list[str], bool]:
    """Return the directory that the components start from, the components, and whether the start is
    known.
    """
    if read.absolute:
        return "/", read.parts, True
    if read.home:
        return _start_at_home(read.parts, env)
    cwd = env.cwd
    if cwd is None:
        try:
            cwd = os.getcwd()
        except OSError:
            return "/", read.parts, False
    return cwd, read.parts, cwd.startswith("/")


def _start_at_home(parts: list[str], env: Surroundings) -> tuple[str, list[str], bool]:
    first, *rest = parts
    home = env.home if env.home is not None else os.path.expanduser("~")
    if first == "~" and home.startswith("/"):
        # A tool that does not expand "~" would use a directory of that name below the current one.
        literal = normalize_path(parts, start=env.cwd or "/")
        known = any(within(literal, clean(root)) for root in env.roots)
        return home, rest, known
    # Another user's home is in a database that may be remote; asking it is not a fact's business.
    return "/home", [first[1:], *rest], False


def _compare_with_roots(
    paths: list[str],
    lexical: str,
    named: bool,
    fact: PathFact,
    env: Surroundings,
) -> None:
    """Note which roots every reading of the path lies in."""
    # A root may be given by a link's name; what counts is where both really are.
    real = real_roots(env)
    common: list[str] = []
    for root, place in zip(env.roots, real, strict=True):
        if all(map(within, paths, repeat(place, len(paths)))):
            common.append(root)
    named = named or any(map(within, repeat(lexical, len(real)), real))
    fact["roots"] = common
    fact["inside"] = bool(common) and named
    fact["escapes"] = named and not common


def _describe(
    readings: list[Resolution],
    fact: PathFact,
    read: PathText,
    parts: list[str],
    start: str,
) -> None:
    found = readings[0]
    fact["resolved"] = found.path
    if found.path is not None and not found.path.isascii():
        fact["resolved"] = escape_surrogates(found.path)
    fact["exists"] = found.exists
    fact["identity"] = found.identity
    rejected: PathRejection | None = None
    for reading in readings:
        fact["symlink"] = fact["symlink"] or reading.symlink
        odd = _note_file(reading, fact)
        if odd is PathRejection.LOOP or rejected is None:
            rejected = odd or rejected
    if read.unnormalized and (not found.exists or _has_composed_twin(parts, start)):
        # Which of two equal-looking names a tool reaches depends on the file system; see Unicode's
        # NFC.
        rejected = rejected or PathRejection.NOT_NORMALIZED
    if rejected is not None and fact["rejected"] is None:
        fact["rejected"] = rejected.value


def _note_file(reading: Resolution, fact: PathFact) -> PathRejection | None:
    """Note the names of a file; return why what is there is no usable file."""
    if reading.loop:
        return PathRejection.LOOP
    if not reading.exists or reading.status is None or reading.is_directory:
        return None
    if not stat.S_ISREG(reading.status.st_mode):
        return PathRejection.SPECIAL_FILE
    fact["hard_links"] = max(reading.status.st_nlink, fact["hard_links"] or 0)
    return None


def _has_composed_twin(parts: list[str], start: str) -> bool:
    composed = [unicodedata.normalize("NFC", part) for part in parts]
    return resolve(composed, start=start).exists is not False


def _sensitive_place(
    lexical: str,
    roots: list[str],
    readings: list[Resolution],
    paths: set[str],
    access: str,
    env: Surroundings,
) -> str | None:
    """Return the most serious class of any place that a path may lead to, or ``None``."""
    directory = bool(readings) and readings[0].is_directory and readings[-1].is_directory
    own_root = clean(roots[0]) if roots else None
    kinds = [sensitive_class(lexical, own_root, directory=directory)]
    changes = access != PathAccess.READ
    if changes and env.read_file_system and any(map(in_bare_repository, paths)):
        kinds.append(PathClass.VCS.value)
    if env.protected:
        kinds += _protected(paths, readings, access, env)
    if len(paths) > 1:
        real = real_roots(env)
        for path in paths - {lexical}:
            root = next((root for root in real if within(path, root)), None)
            kinds.append(sensitive_class(path, root, directory=directory))
    return min(filter(None, kinds), key=lambda kind: _RANK.get(kind, -1), default=None)


def _protected(
    paths: set[str],
    readings: list[Resolution],
    access: str,
    env: Surroundings,
) -> list[str]:
    """Return the classes of the protected places that a path names, leads to or holds."""
    identities: set[str | None] = set()
    for found in readings:
        if found.exists:
            identities.add(found.identity)
    replaced: set[str] = set()
    if access != PathAccess.READ:
        # Removing, renaming or replacing a directory changes what it holds.
        replaced = paths - set(map(clean, env.roots))
    folded_paths = list(map(str.casefold, paths))
    kinds: list[str] = []
    known = {} if env.looked_up is None else env.looked_up
    for place, kind in env.protected:
        named = clean(place)
        if env.read_file_system and named not in known:
            found = resolve([], start=named)
            known[named] = (found.path, found.identity if found.exists else None)
        real, identity = known.get(named, (None, None))
        is_same_file = identity is not None and identity in identities
        # on a file system that folds case, ".AGENTTOOL" is ".agenttool"
        folded = {named.casefold(), (real or named).casefold()}
        pairs = product(folded_paths, folded)
        if is_same_file or any(map(within, repeat(named), replaced)) or any(starmap(within, pairs)):
            kinds.append(kind)
    return kinds
