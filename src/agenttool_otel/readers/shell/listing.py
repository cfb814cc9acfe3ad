"""Which names of files the commands of a pipeline print."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from agenttool_otel.readers.shell.compounds import Simple
from agenttool_otel.readers.shell.effects import Touch, Verdict, base_name
from agenttool_otel.readers.shell.programs import find_words

_LISTS_FILES = re.compile(r"-[EFGPiyvwxcqsbHhnoTUzRraIZ]*[lL]|--files-with(?:out)?-match")
_RG_LISTS = re.compile(r"-[SiwFnsvu0]*l[lSiwFnsvu0]*|--files(?:-with(?:out)?-match(?:es)?)?")
_RG_CHOOSES = re.compile(
    r"-[SiwFnsvu0]+|-[gt]\S*|--(?:hidden|no-ignore|null|i?glob(?:=.*)?|type(?:=.*)?|sort=\w+)"
)
_GIT_GREP = re.compile(
    r"(?:-[iwEFPn]+ )*(?:-[iwEFPn]*l[iwEFPn]*|--files-with-matches|--name-only)(?: -[iwEFPn]+)* [^- ][^ ]*"
    r"(?: --(?: [\w*][\w*/-]*(?:\.[\w*/-]+)*)+)?"
)
_LS_FILES = {
    "-c",
    "-m",
    "-o",
    "-z",
    "--cached",
    "--modified",
    "--others",
    "--exclude-standard",
    "--",
}
_TRACKED = re.compile(
    r"(?:(?P<folder>\w[\w-]*(?:/\w[\w-]*)*)/)?(?P<kind>\*\.\w+)|(?P<all>\w[\w-]*(?:/\w[\w-]*)*)/?"
)
_SORTS = re.compile("-[1trdS]+")
_FILTERS = re.compile(
    r"(?:head|tail)(?: -n?[0-9]*)*|(?:sort|uniq)(?: -[ufrnz]+)*|[ef]?grep(?: -[viEFwxez]+)*"
)
"""What leaves out names, or sorts them, and the options with which it does no more than that."""


def listed_by(judged: Iterable[tuple[Simple, Verdict]], *, bare: bool) -> list[Touch]:
    """The trees whose file names a pipeline prints, or none where it may print anything; names
    alone may be bare.

    Its commands come with what is known of them, the last one first.
    """
    for command, verdict in judged:
        words = [word.text for word in command.words]
        name, options = (
            base_name("".join(words[:1])),
            [word for word in words[1:] if word.startswith("-")],
        )
        if (
            not words
            or not verdict.read_only
            or any("<" in redirect.operator for redirect in command.redirects)
        ):
            break
        if _FILTERS.fullmatch(" ".join([name, *options])):
            if any(touch.operation == "read" for touch in verdict.touches):
                break
            continue
        listed = _lists_files(words)
        reads = [touch for touch in verdict.touches if touch.operation == "read"]
        if name == "find" and not {"-printf", "-ls"} & set(words):
            if "-exec" not in words:
                names = find_words(command.words[1:]).file_names
                return [
                    touch._replace(names=names)
                    for touch in verdict.touches
                    if touch.operation == "list"
                ]
            return (
                reads
                if words.count("-exec") == 1 and _lists_files(words[words.index("-exec") + 1 :])
                else []
            )
        if name == "ls" and bare:
            return verdict.touches
        if name == "ls" and all(map(_SORTS.fullmatch, options)):
            flat = all(touch.glob for touch in verdict.touches)
            return (
                [touch._replace(operation="read", flat=True) for touch in verdict.touches]
                if flat
                else []
            )
        if name == "rg":
            rest = [option for option in options if not _RG_LISTS.fullmatch(option)]
            plain = len(rest) < len(options) and all(map(_RG_CHOOSES.fullmatch, rest))
            return [touch._replace(bare=True) for touch in verdict.touches] if plain else []
        if listed:
            return [touch._replace(bare=True) for touch in reads]
        if words[:2] == ["git", "grep"] and _GIT_GREP.fullmatch(
            " ".join(w.replace(" ", "_") for w in words[2:])
        ):
            return [Touch(".", "read", bare=True, tracked=True)]
        # what a commit names need not be there, and may then be taken apart at its blanks
        changed = (
            words[:2] == ["git", "diff"]
            and "--name-only" in words
            and (bare or words[2:] == ["--name-only"])
        )
        tracked = words[:2] == ["git", "ls-files"] and set(options) <= _LS_FILES
        if (tracked or changed) and not any(
            word[:1] in (":", "/") or ".." in word for word in words
        ):
            chosen = [_TRACKED.fullmatch(word) for word in words[2:] if not word.startswith("-")]
            of_git = Touch(
                ".", "read", bare=True, tracked=tracked and {"-o", "--others"}.isdisjoint(options)
            )
            if not tracked or not chosen or None in chosen:
                return [of_git]
            kinds = [one.groupdict() for one in chosen if one]
            return [
                of_git._replace(
                    word=k["folder"] or k["all"] or ".", names=tuple(filter(None, [k["kind"]]))
                )
                for k in kinds
            ]
        break
    return []


def _lists_files(words: list[str]) -> bool:
    """Whether a call of grep prints nothing but the names of files."""
    options = list(takewhile(lambda word: word not in ("--", ";", "+"), words))[1:]
    named = words[:1] in (["grep"], ["egrep"], ["fgrep"]) and "-" not in words
    return (
        named
        and any(map(_LISTS_FILES.match, options))
        and not any(word.startswith("--la") for word in options)
    )
