"""What is known of commands that are not proven to only read: for the facts that warn."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import NamedTuple

from agenttool_otel.readers.shell.tables import effects

MAX_WRAPPERS = 4
_TRUSTED_DIRECTORIES = ("/bin", "/usr/bin")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLAIN_ASSIGNMENT = re.compile(r"([A-Z_]+)=(?:[A-Za-z0-9_+-]+(?:[./@][A-Za-z0-9_+-]+)*)?\Z")
_CLUSTER = re.compile(r"-[A-Za-z]+")


def base_name(name: str) -> str:
    """The command's name without a system directory; other paths are kept, for anything may
    lie there.
    """
    directory, _, base = name.rpartition("/")
    return base if directory in _TRUSTED_DIRECTORIES else name


class Refused(Exception):
    """Ends the proof of one command; the message says why."""


def refuse_if(doubt: object, reason: str = "") -> None:
    """Ends the proof of one command when there is a doubt, which may be the reason itself."""
    if doubt:
        raise Refused(reason or str(doubt))


class Touch(NamedTuple):
    """One place that a command touches, as its line names it."""

    word: str
    operation: str  # see ShellPlace
    glob: bool = False  # the shell replaces it by the names that it matches
    recursive: bool = False  # with what lies below it, and its contents
    names: tuple[str, ...] = ()  # patterns of the file names that are read below it; none for all
    hidden: bool = True  # names that begin with a dot are read below it, too
    # links below it are followed; "named": those whose own names are listed
    follow: bool | str = False
    split: bool = False  # its names are split at blanks, so that a name with a blank is another one
    # none of the names that it matches is a directory, whose names would be named in its place
    flat: bool = False
    tracked: bool = False  # only what git's index holds
    # what lies below it is named without "./" in front, so that a name may be an option
    bare: bool = False
    below: bool = False  # only where the directory part of the word is a directory


@dataclass(slots=True)
class Verdict:
    """What is known of one command."""

    directories: tuple[str, ...] = ("",)  # that it may run in, by the text of the line
    depth: int = 0  # how many wrappers it stands behind
    read_only: bool = False  # proven
    reason: str = ""  # why, or why not
    category: str = "unknown"  # see ShellCommand
    touches: list[Touch] = field(default_factory=list)  # the places that it touches
    complete: bool = True  # whether these are all
    exposed: bool = False  # proven only where these are, for names of files could be options
    repository: bool = False  # proven only where the repository's configuration runs nothing
    sensitive: bool = False  # reads credentials or the environment
    network: bool = False  # may send or fetch
    executes: bool = False  # may run code or another program that it was given
    unreviewed: list[str] = field(default_factory=list)  # its words that no table accounts for
    destructive: bool = False  # deletes, overwrites or kills
    foreign: bool = False  # text of another shell (PowerShell, cmd)
    script: str | None = None  # the text that ``sh -c`` and the like run, to be read in turn


def redirect_writes(operator: str, target: str) -> bool:
    """Whether a redirection may change a file: everything but input, descriptor copies and
    /dev/null does.
    """
    # one ASCII digit is a descriptor; a digit of another script is a file's name to the shell
    if operator in ("<", "<<", "<<<", "<&") or (
        operator == ">&" and len(target) == 1 and target in "0123456789"
    ):
        return False
    return not (operator in (">", ">>", "&>", "&>>", ">&", ">|") and target == "/dev/null")


def effects_of(words: list[str], verdict: Verdict, depth: int = 0) -> None:
    """Adds what the tables know of a command that is not proven to only read; unknown programs may
    do anything.
    """
    if not words:
        return
    table = effects()
    name = posixpath.basename(words[0]) or words[0]
    lower = name.lower()
    verb, dash, noun = lower.partition("-")
    cmdlet = (
        dash and noun.isalpha() and name[:1].isupper() and verb in table.lists["powershell_verbs"]
    )
    verdict.foreign = verdict.foreign or lower in table.lists["foreign"] or bool(cmdlet)
    unknown = name not in table.lists["known"] or lower in table.lists["foreign"]
    verdict.executes |= unknown or name in table.lists["executes"]
    verdict.network |= (
        unknown or name in table.lists["network"] or _holds(table.network_words, name, words)
    )
    triggers = table.destructive_words.get(name, ())
    deletes = name in table.lists["destructive"] or name.startswith("mkfs.")
    verdict.destructive |= deletes or any(_triggered(word, triggers) for word in words[1:])
    told = name in table.lists["prints_environment"] | table.lists["sends"] and not _only_sets(
        words
    )
    verdict.sensitive |= told or _holds(table.sensitive_words, name, words)
    if depth < MAX_WRAPPERS:
        effects_of(_behind(words) or [], verdict, depth + 1)
        for index in (
            i
            for i, word in enumerate(words)
            if name == "find" and word in table.lists["find_actions"]
        ):
            effects_of(words[index + 1 :], verdict, depth + 1)


def _only_sets(words: list[str]) -> bool:
    """Whether it is ``env CI=1 COMMAND``, which prints nothing itself."""
    rest = (
        list(dropwhile(is_harmless_assignment, words[1:])) if base_name(words[0]) == "env" else []
    )
    return bool(rest) and rest[0][:1] != "-" and "=" not in rest[0]


def _behind(words: list[str]) -> list[str] | None:
    """The command that a wrapper such as ``sudo`` or ``timeout`` runs, or ``None`` when there is no
    wrapper.
    """
    wrapper = effects().wrappers.get(posixpath.basename(words[0])) if words else None
    if wrapper is None:
        return None
    index = 1
    while index < len(words):
        word = words[index]
        if word == "--":
            index += 1
            break
        if word.startswith("-") and len(word) > 1:
            takes = not word.startswith("--") and word[-1] in wrapper.value
            index += 2 if takes else 1
        elif wrapper.assignments and _ASSIGNMENT.match(word):
            index += 1
        else:
            break
    return words[index + wrapper.skip :]


def unwrapped(words: list[str]) -> list[str]:
    """The command behind all wrappers."""
    for _ in range(MAX_WRAPPERS):
        if (inner := _behind(words)) is None:
            break
        words = inner
    return words


def _holds(patterns: dict[str, re.Pattern[str]], name: str, words: list[str]) -> bool:
    pattern = patterns.get(name)
    return pattern is not None and any(map(pattern.search, words[1:]))


def is_harmless_variable(name: str) -> bool:
    """Whether an assignment before a command changes neither what it runs nor what that loads."""
    return name in effects().lists["harmless_variables"] or name.startswith("LC_")


def is_harmless_assignment(text: str) -> bool:
    """Whether ``NAME=value`` only chooses a language, a time zone or the like; the value can name
    no file.
    """
    match = _PLAIN_ASSIGNMENT.match(text)
    return match is not None and (
        is_harmless_variable(match[1]) or text in effects().lists["harmless_assignments"]
    )


def _triggered(word: str, triggers: tuple[str, ...]) -> bool:
    for trigger in triggers:
        if word == trigger:
            return True
        if trigger.startswith("--"):
            bare = word.partition("=")[0]
            if len(bare) > 3 and (trigger.startswith(bare) or bare.startswith(trigger)):
                return True
        elif (
            len(trigger) == 2
            and trigger[0] == "-"
            and _CLUSTER.match(word)
            and trigger[1] in word[:8]
        ):
            return True
    return False


def script_of(words: list[str], depth: int = 0) -> str | None:
    """The script text that a command runs, when it is written out: ``sh -c TEXT``, ``eval TEXT``,
    behind wrappers.
    """
    if not words or depth > MAX_WRAPPERS:
        return None
    table = effects()
    name = posixpath.basename(words[0])
    if name == "eval":
        return " ".join(words[1:]) or None
    if name == "trap" and len(words) > 2:
        return words[1]
    if name in table.lists["shells"]:
        at = next(
            (i for i, word in enumerate(words) if i and re.match("-(?!-).*c", word, re.DOTALL)),
            len(words),
        )
        return words[at + 1] if at + 1 < len(words) else None
    if name in table.wrappers or name == "find":
        for index, word in enumerate(words[1:], start=1):
            if posixpath.basename(word) in table.lists["shells"] or word == "eval":
                return script_of(words[index:], depth + 1)
            if name == "env" and word.startswith("-S"):
                return word[2:] or " ".join(words[index + 1 :])
            if name == "env" and word.startswith("--split-string"):
                return word.partition("=")[2] or " ".join(words[index + 1 :])
    return None
