"""What a person would have to agree to for such calls to run: the needs of a call, made of its facts.

Each need is what is done and inside which place, never a text of the call. Where one thing about a call is not known,
lies outside of the roots or is sensitive, the call has no needs that anybody could agree to once for many.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agenttool_otel.facts.paths.fact import clean, within
from agenttool_otel.facts.types import Facts, PathFact, ShellCommand, UrlFact

Need = dict[str, str]
"""``does``: a key of SENTENCES; ``what``: words, where it has any; ``inside``: a directory, or a URL's origin."""

SENTENCES: Final = {
    "write": "writes inside {inside}",
    "delete": "deletes single files inside {inside}",
    "run": "runs scripts, tests and modules that lie inside {inside}",
    "test": "`{what}` inside {inside}",
    "command": "`{what}` inside {inside}",
    "install": "`{what}` of packages by name, and of what lies inside {inside}",
    "reach": "{what} {inside}",
}
"""What each need is to a person."""

_OPERATIONS: Final = {"write": "write", "create": "write", "append": "write", "overwrite": "write", "delete": "delete"}
_READS: Final = frozenset({"read", "list", "enter", "execute"})
_KNOWN: Final = _READS | _OPERATIONS.keys()
_INTERPRETER: Final = re.compile(r"(?:python|pypy)[0-9.]*|node|ruby|perl|php|bash|sh|dash|zsh|Rscript|lua")
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
_PIP: Final = re.compile(r"(?:(?:python[0-9.]* -m )?pip[0-9.]*) install")
_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[a-z0-9_,-]+\])?(?:(?:[=<>!~]=|[<>])[0-9a-z.*]+)?")


def needs_of(
    facts: Facts, arguments: Mapping[str, Any], roots: Sequence[str], *, harmless: bool = False
) -> list[Need] | None:
    """Return the needs of a call, or ``None`` where it can't be agreed to by facts.

    Of a call without commands, ``harmless`` says that its paths and URLs tell all that it does.
    """
    try:
        if facts["sql"] or not (facts["shell"] or harmless):
            return None
        found = [_of_path(fact, "write" if fact["access"] == "write" else "read") for fact in facts["paths"]]
        found += [_of_url(fact, arguments) for fact in facts["urls"]]
        for line in facts["shell"]:
            if not line["parsed"] or line["unparsed"] or line["sensitive_read"] or line["runs_download"]:
                return None
            for command in line["commands"]:
                found += _of_command(command, roots)
    except _NotAgreeable:
        return None
    needs = {tuple(one.items()): one for one in found if one}
    return [needs[key] for key in sorted(needs)] or None


def widened(needs: Sequence[Need], roots: Sequence[str]) -> list[Need]:
    """Return needs for the whole roots instead of directories in them."""
    wide = ({**one, "inside": next((r for r in roots if _inside(one["inside"], r)), one["inside"])} for one in needs)
    return [dict(key) for key in sorted({tuple(one.items()) for one in wide})]


def meets(agreed: Sequence[Mapping[str, Any]], need: Need) -> bool:
    """Tell whether what was agreed to includes a need."""
    return any(
        (one.get("does"), one.get("what"))
        in ((need["does"], need["what"]), ("run" if need["does"] == "test" else "", ""))
        and _inside(need["inside"], str(one.get("inside")))
        for one in agreed
    )


def sentence(needs: Sequence[Mapping[str, Any]]) -> str:
    """Return needs in words."""
    words = [SENTENCES[one["does"]].format(what=one["what"], inside=one["inside"]) for one in needs]
    return ", ".join(words)


class _NotAgreeable(Exception):
    """Something about the call is not for agreeing to by facts."""


def _inside(place: str, directory: str) -> bool:
    return place == directory or (directory.startswith("/") and within(clean(place), clean(directory)))


def _need(does: str, what: str, inside: str) -> Need:
    return {"does": does, "what": what, "inside": inside}


def _of_path(fact: PathFact, operation: str) -> Need | None:
    """The need of one place; reading inside the roots is none."""
    lexical = fact["lexical"]
    root = next((root for root in fact["roots"] if within(lexical, clean(root))), None)
    doubtful = fact["escapes"] or fact["rejected"] or not fact["certain"] or (fact["hard_links"] or 0) > 1
    odd = operation not in _KNOWN or fact["encoded"] or fact["confusable"] or fact["variables"] or fact["windows"]
    if doubtful or odd or not fact["inside"] or fact["sensitive"] is not None or root is None:
        raise _NotAgreeable
    if operation in _READS:
        return None
    # behind a link, which of the root's directories it is can't be told
    folder = [] if fact["symlink"] else lexical[len(clean(root)) :].strip("/").split("/")[:-1]
    return _need(_OPERATIONS[operation], "", os.path.join(clean(root), *folder[:1]))


def _of_url(fact: UrlFact, arguments: Mapping[str, Any]) -> Need:
    """The need of a URL; only where nothing is sent to it but its own text."""
    doubtful = fact["rejected"] or fact["disagreement"] or fact["lookalike"] or not fact["certain"]
    doubtful = doubtful or (fact["relay"] and not fact["allowed_host"])
    secret = fact["credentials"] or fact["sensitive_query"]
    names = {name for name, value in arguments.items() if isinstance(value, (str, dict, list, tuple)) and value}
    method = str(arguments.get("method") or "GET").upper()
    beside = names - {fact["argument"].lstrip("/"), "method"}
    if doubtful or secret or beside or method not in ("GET", "HEAD") or fact["address_class"] not in ("name", "public"):
        raise _NotAgreeable
    port = "" if (fact["scheme"], fact["port"]) in (("https", 443), ("http", 80)) else f":{fact['port']}"
    return _need("reach", method, f"{fact['scheme']}://{fact['host']}{port}")


def _of_command(command: ShellCommand, roots: Sequence[str]) -> list[Need | None]:
    """The needs of one simple command."""
    # only commands need these
    from agenttool_otel.facts.python_code import only_calls_modules
    from agenttool_otel.facts.shell.actions import actions
    from agenttool_otel.facts.shell.effects import unwrapped
    from agenttool_otel.facts.shell.tables import effects

    places = [_of_path(place["path"], place["operation"]) for place in command["places"]]
    if command["read_only"] and command["complete"]:
        return []
    if command["repository"] is not None:
        raise _NotAgreeable
    argv, directory, category = unwrapped(command["argv"]), command["directory"] or "", command["category"]
    root = next((clean(root) for root in roots if within(clean(directory), clean(root))), "") if directory else ""
    odd = command["assignments"] or command["read_only"] or command["name"] in ("xargs", "parallel")
    if odd or not root or not argv:
        raise _NotAgreeable
    if category in ("writer", "deleter") and command["complete"]:
        return places
    inline = category == "runner" and _PYTHON.fullmatch(argv[0]) is not None and argv[1:2] == ["-c"] and len(argv) > 2
    if not all(_stays(word, directory, root) for word in argv[3 if inline else 1 :]):
        raise _NotAgreeable
    if inline and only_calls_modules(argv[2]):
        return [*places, _need("run", "", root)]
    if category == "vcs_local" and command["complete"]:
        return [_need("command", " ".join(argv[:2]), root)]
    module = argv[1:2] == ["-m"] and len(argv) > 2
    # modules of the standard library run the code or the file that they are given, as -c does
    own = module and argv[2].partition(".")[0] not in sys.stdlib_module_names and "-c" not in argv
    if category == "tester" or (category == "runner" and own):
        named = 3 if module else 1 + (argv[1:2] != [] and argv[1] in actions().words.get(argv[0], {}))
        return [*places, _need("test", " ".join(argv[:named]), root)]
    scripts = [place for place in command["places"] if place["operation"] == "execute"]
    if category == "runner" and _INTERPRETER.fullmatch(argv[0]) and argv[1:2] == [p["word"] for p in scripts[:1]] != []:
        return [*places, _need("run", "", root)]
    pip = _PIP.match(" ".join(argv))
    options = effects().lists["pip_options"]
    if pip and all(word in options or _PACKAGE.fullmatch(word) or _is_here(word, directory) for word in argv[2:]):
        return [*places, _need("install", "pip install", root)]
    raise _NotAgreeable


def _stays(word: str, directory: str, root: str) -> bool:
    """Tell whether no reading of a word as a path leaves a root."""
    parts = [*re.split(r"[=:,]", word), word[2:] if word.startswith("-") else ""]
    real = os.path.realpath(root)
    return not any(
        part.startswith("~") or not within(os.path.realpath(os.path.join(directory, part)), real)
        for part in parts
        if part
    )


def _is_here(word: str, directory: str) -> bool:
    name = word.partition("[")[0]
    return name in (".", "install") or (name.startswith("./") or os.path.isfile(os.path.join(directory, name)))
