"""What a person would have to agree to for such calls to run: the needs of a call, made of its facts.

Each need is what is done and inside which place. A command is named with each of its words that no
reviewed table (readers/shell/reviewed) calls inert, so that an agreement to ``pytest -q`` is none to
``pytest -p x``; code that stands in a command's words is never agreed to by facts. Where one thing
about a call is not known, lies outside of the roots or is sensitive, the call has no needs that
anybody could agree to once for many.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agenttool_otel.facts.types import Facts
from agenttool_otel.readers.paths.fact import clean, within
from agenttool_otel.readers.shell.reviewed.words import Review, review
from agenttool_otel.readers.types import PathFact, ShellCommand, UrlFact

Need = dict[str, str]
"""``does``: a key of SENTENCES; ``what``: words, where it has any; ``inside``: a directory, or a
URL's origin.
"""

SENTENCES: Final = {
    "write": "writes inside {inside}",
    "delete": "deletes single files inside {inside}",
    "run": "runs any script or module that lies inside {inside}, with words that lead nowhere else",
    "test": "`{what}` inside {inside}, with any words that only choose or show",
    "command": "`{what}` inside {inside}, with any message, new name or file of it",
    "install": "`{what}` of packages by name, and of what lies inside {inside}",
    "reach": "{what} {inside}",
}
"""What each need is to a person."""

_OPERATIONS: Final = {
    "write": "write",
    "create": "write",
    "append": "write",
    "overwrite": "write",
    "delete": "delete",
}
_READS: Final = frozenset({"read", "list", "enter", "execute"})
_KNOWN: Final = _READS | _OPERATIONS.keys()
_MAX_WHAT: Final = 200
_DISTRIBUTION: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_EXTRAS: Final = r"\[[a-z0-9_,-]+\]"
_VERSION: Final = r"(?:[=<>!~]=|[<>])[0-9a-z.*]+"
_PACKAGE: Final = re.compile(f"{_DISTRIBUTION}(?:{_EXTRAS})?(?:{_VERSION})?")
"""A package by name, as pip takes it: ``httpx[http2]==0.28``."""


def needs_of(
    facts: Facts, arguments: Mapping[str, Any], roots: Sequence[str], *, harmless: bool = False
) -> list[Need] | None:
    """Return the needs of a call, or ``None`` where it can't be agreed to by facts.

    Of a call without commands, ``harmless`` holds that its paths and URLs are all that it does.
    """
    try:
        if facts["sql"] or not (facts["shell"] or harmless):
            return None
        found = [
            _of_path(fact, "write" if fact["access"] == "write" else "read")
            for fact in facts["paths"]
        ]
        found += [_of_url(fact, arguments) for fact in facts["urls"]]
        for line in facts["shell"]:
            if (
                not line["parsed"]
                or line["unparsed"]
                or line["sensitive_read"]
                or line["runs_download"]
            ):
                return None
            for command in line["commands"]:
                found += _of_command(command, roots)
    except _NotAgreeable:
        return None
    needs = {tuple(need.items()): need for need in found if need}
    return [needs[key] for key in sorted(needs)] or None


def widened(needs: Sequence[Need], roots: Sequence[str]) -> list[Need]:
    """Return needs for the whole roots instead of directories in them."""
    distinct: set[tuple[tuple[str, str], ...]] = set()
    for need in needs:
        inside = need["inside"]
        for root in roots:
            if _inside(inside, root):
                inside = root
                break
        wide = {**need, "inside": inside}
        distinct.add(tuple(wide.items()))
    return [dict(items) for items in sorted(distinct)]


def meets(agreed: Sequence[Mapping[str, Any]], need: Need) -> bool:
    """Return whether what was agreed to includes a need."""
    for accepted in agreed:
        if accepted.get("does") != need["does"] or accepted.get("what") != need["what"]:
            continue
        if _inside(need["inside"], str(accepted.get("inside"))):
            return True
    return False


def sentence(needs: Sequence[Mapping[str, Any]]) -> str:
    """Return needs in words."""
    words: list[str] = []
    for need in needs:
        template = SENTENCES[need["does"]]
        words.append(template.format(what=need["what"], inside=need["inside"]))
    return ", ".join(words)


class _NotAgreeable(Exception):
    """Something about the call is not for agreeing to by facts."""


def _inside(place: str, directory: str) -> bool:
    if place == directory:
        return True
    if not directory.startswith("/"):
        return False
    return within(clean(place), clean(directory))


def _need(does: str, what: str, inside: str) -> Need:
    return {"does": does, "what": what, "inside": inside}


def _of_path(fact: PathFact, operation: str) -> Need | None:
    """The need of one place; reading inside the roots is none."""
    lexical = fact["lexical"]
    root = next((root for root in fact["roots"] if within(lexical, clean(root))), None)
    doubtful = (
        fact["escapes"] or fact["rejected"] or not fact["certain"] or (fact["hard_links"] or 0) > 1
    )
    odd = (
        operation not in _KNOWN
        or fact["encoded"]
        or fact["confusable"]
        or fact["variables"]
        or fact["windows"]
    )
    if doubtful or odd or not fact["inside"] or fact["sensitive"] is not None or root is None:
        raise _NotAgreeable
    if operation in _READS:
        return None
    # behind a link, which of the root's directories it is can't be determined
    folder = [] if fact["symlink"] else lexical[len(clean(root)) :].strip("/").split("/")[:-1]
    return _need(_OPERATIONS[operation], "", os.path.join(clean(root), *folder[:1]))


def _of_url(fact: UrlFact, arguments: Mapping[str, Any]) -> Need:
    """The need of a URL; only where nothing is sent to it but its own text."""
    doubtful = fact["rejected"] or fact["disagreement"] or fact["lookalike"] or not fact["certain"]
    doubtful = doubtful or (fact["relay"] and not fact["allowed_host"])
    secret = fact["credentials"] or fact["sensitive_query"]
    names = {
        name
        for name, value in arguments.items()
        if isinstance(value, (str, dict, list, tuple)) and value
    }
    method = str(arguments.get("method") or "GET").upper()
    beside = names - {fact["argument"].lstrip("/"), "method"}
    if (
        doubtful
        or secret
        or beside
        or method not in ("GET", "HEAD")
        or fact["address_class"] not in ("name", "public")
    ):
        raise _NotAgreeable
    port = (
        ""
        if (fact["scheme"], fact["port"]) in (("https", 443), ("http", 80))
        else f":{fact['port']}"
    )
    return _need("reach", method, f"{fact['scheme']}://{fact['host']}{port}")


def _of_command(command: ShellCommand, roots: Sequence[str]) -> list[Need | None]:
    """The needs of one simple command."""
    places = [_of_path(place["path"], place["operation"]) for place in command["places"]]
    if command["read_only"] and command["complete"]:
        return []
    if command["repository"] is not None:
        raise _NotAgreeable
    if command["carries"]:
        return places  # what the shell runs is listed behind it
    if command["read_only"]:
        raise _NotAgreeable
    argv = command["plain"]
    category = command["category"]
    directory = command["directory"] or ""
    root = _root_of(directory, roots)
    if not root or not argv:
        raise _NotAgreeable
    if category in ("writer", "deleter") and command["complete"]:
        return places
    read = _reviewed(command, directory, root)
    if category == "vcs_local" and command["complete"]:
        return [_of_words(read, "command", root)]
    return [*places, _of_program(read, command, directory, root)]


def _reviewed(command: ShellCommand, directory: str, root: str) -> Review:
    """Review a command's words, of which none may lead out of the root."""
    argv = command["plain"]
    if not all(_stays(word, directory, root) for word in argv[1:]):
        raise _NotAgreeable
    read = review(argv)
    # what stands in front of the command, or comes from its input, is none of the command's words
    if any(word not in read.unreviewed for word in command["unreviewed"]):
        raise _NotAgreeable
    return read


def _of_program(read: Review, command: ShellCommand, directory: str, root: str) -> Need:
    """The need of an interpreter, an installer, a test runner or a build tool."""
    category = command["category"]
    if read.operands == "script" and category == "runner":
        scripts = [place["word"] for place in command["places"] if place["operation"] == "execute"]
        return _of_code(read, scripts[:1], directory, root)
    if category == "installer" and read.operands == "packages":
        return _of_install(read, directory, root)
    if category in ("tester", "builder") or _runs_target(read, category):
        for name in read.modules:
            if not _lies_inside(name, directory, root, whole=False):
                read.exact.append(name)
        return _of_words(read, "test", root)
    raise _NotAgreeable


def _runs_target(read: Review, category: str) -> bool:
    """Return whether a command runs a named target, as ``make test`` does."""
    return category == "runner" and read.operands == "target"


def _root_of(directory: str, roots: Sequence[str]) -> str:
    """Return the root that a directory lies in, or an empty text."""
    if not directory:
        return ""
    for root in roots:
        if within(clean(directory), clean(root)):
            return clean(root)
    return ""


def _of_code(read: Review, scripts: list[str], directory: str, root: str) -> Need:
    """The need of an interpreter: a script, or a module by its name, that lies inside a root."""
    if _runs_own_module(read, directory, root):
        return _need("run", "", root)
    if read.unreviewed or read.exact != scripts:
        raise _NotAgreeable
    return _need("run", "", root)


def _runs_own_module(read: Review, directory: str, root: str) -> bool:
    # python -m app.cli --fast: "-m" is of no table, nor is what follows it
    if read.name != "python" or read.exact[:1] != ["-m"] or len(read.exact) < 2:
        return False
    return _lies_inside(read.exact[1], directory, root, whole=True)


def _of_install(read: Review, directory: str, root: str) -> Need:
    """The need of installing packages by name, and what lies inside a root."""
    if read.unreviewed:
        raise _NotAgreeable
    for package in read.packages:
        if not _PACKAGE.fullmatch(package) and not _is_here(package, directory):
            raise _NotAgreeable
    return _of_words(read, "install", root)


def _of_words(read: Review, does: str, root: str) -> Need:
    """The need of a command by its words."""
    what = read.words
    if len(what) > _MAX_WHAT or not what.isprintable():
        raise _NotAgreeable
    return _need(does, what, root)


def _lies_inside(module: str, directory: str, root: str, *, whole: bool) -> bool:
    """Return whether Python finds a module below a directory, as a file inside a root.

    With ``whole`` the last part of the name has to be the file, or a package that can be run; else
    some part has to be.
    """
    parts = module.split(".")
    if parts[0] in sys.stdlib_module_names or not all(map(str.isidentifier, parts)):
        return False
    real = os.path.realpath(root)
    place = directory
    for position, part in enumerate(parts, start=1):
        is_last = position == len(parts)
        place = os.path.join(place, part)
        found = f"{place}/__init__.py"
        is_package = os.path.isfile(found)
        if not is_package:
            # a directory without __init__.py gives way to a package that is installed
            found = f"{place}.py"
        elif whole and is_last:
            found = f"{place}/__main__.py"
        if not os.path.isfile(found) or not within(os.path.realpath(found), real):
            return False
        if not is_package:
            return is_last or not whole
    return True


def _stays(word: str, directory: str, root: str) -> bool:
    """Return whether no reading of a word as a path leaves a root."""
    parts = [*re.split(r"[=:,]", word), word[2:] if word.startswith("-") else ""]
    real = os.path.realpath(root)
    return not any(
        part.startswith("~") or not within(os.path.realpath(os.path.join(directory, part)), real)
        for part in parts
        if part
    )


def _is_here(word: str, directory: str) -> bool:
    name = word.partition("[")[0]
    return name == "." or (name.startswith("./") or os.path.isfile(os.path.join(directory, name)))
