"""What is known of commands that are not proven to only read: for the facts that warn."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from agenttool_otel.readers.shell.tables import Wrapper, effects
from agenttool_otel.readers.shell.verdict import Warnings

MAX_WRAPPERS = 4
"""Wrappers in front of each other that are looked through."""

_TRUSTED_DIRECTORIES = ("/bin", "/usr/bin")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLAIN_VALUE = r"(?:[A-Za-z0-9_+-]+(?:[./@][A-Za-z0-9_+-]+)*)?"
_PLAIN_ASSIGNMENT = re.compile(rf"([A-Z_]+)={_PLAIN_VALUE}\Z")
_CLUSTER = re.compile(r"-[A-Za-z]+")
# -c, -lc, but not --norc
_SCRIPT_OPTION = re.compile(r"-(?!-).*c", re.DOTALL)


def base_name(name: str) -> str:
    """Return the command's name without a system directory.

    Another path is kept, for anything may lie there.
    """
    directory, _, base = name.rpartition("/")
    return base if directory in _TRUSTED_DIRECTORIES else name


def add_effects(words: Sequence[str], warnings: Warnings, depth: int = 0) -> None:
    """Add what the tables know of a command that is not proven to only read.

    An unknown program may do anything.
    """
    if not words:
        return
    name = posixpath.basename(words[0]) or words[0]
    lists = effects().lists
    foreign = name.lower() in lists["foreign"]
    unknown = name not in lists["known"] or foreign
    if foreign or _is_cmdlet(name):
        warnings.other_shell = True
    if unknown or name in lists["executes"]:
        warnings.executes = True
    if unknown or name in lists["network"] or _holds(effects().network_words, name, words):
        warnings.network = True
    if _destroys(name, words):
        warnings.destructive = True
    if _reveals(name, words):
        warnings.sensitive = True
    if depth < MAX_WRAPPERS:
        _add_inner_effects(name, words, warnings, depth + 1)


def _add_inner_effects(name: str, words: Sequence[str], warnings: Warnings, depth: int) -> None:
    """Add what is known of the commands that a command runs."""
    add_effects(_behind(words) or [], warnings, depth)
    if name != "find":
        return
    for index, word in enumerate(words):
        if word in effects().lists["find_actions"]:
            add_effects(words[index + 1 :], warnings, depth)


def _is_cmdlet(name: str) -> bool:
    """Whether a name looks like PowerShell's: ``Remove-Item``."""
    verb, dash, noun = name.lower().partition("-")
    if not dash or not noun.isalpha() or not name[:1].isupper():
        return False
    return verb in effects().lists["powershell_verbs"]


def _destroys(name: str, words: Sequence[str]) -> bool:
    if name in effects().lists["destructive"] or name.startswith("mkfs."):
        return True
    triggers = effects().destructive_words.get(name, ())
    return any(_is_triggered(word, trigger) for word in words[1:] for trigger in triggers)


def _is_triggered(word: str, trigger: str) -> bool:
    """Whether a word is an option that destroys, also shortened or among other letters."""
    if word == trigger:
        return True
    if trigger.startswith("--"):
        # --forc, --force-with-lease=main
        bare = word.partition("=")[0]
        return len(bare) > 3 and (trigger.startswith(bare) or bare.startswith(trigger))
    if len(trigger) == 2 and trigger[0] == "-":
        return _CLUSTER.match(word) is not None and trigger[1] in word[:8]
    return False


def _reveals(name: str, words: Sequence[str]) -> bool:
    """Whether a command prints the environment, or can carry data out."""
    lists = effects().lists
    prints = name in lists["prints_environment"] or name in lists["sends"]
    if prints and not _only_sets(words):
        return True
    return _holds(effects().sensitive_words, name, words)


def _only_sets(words: Sequence[str]) -> bool:
    """Whether it is ``env CI=1 COMMAND``, which prints nothing itself."""
    if base_name(words[0]) != "env":
        return False
    rest = list(words[1:])
    while rest and is_harmless_assignment(rest[0]):
        rest.pop(0)
    return bool(rest) and rest[0][:1] != "-" and "=" not in rest[0]


def _holds(patterns: dict[str, re.Pattern[str]], name: str, words: Sequence[str]) -> bool:
    pattern = patterns.get(name)
    return pattern is not None and any(map(pattern.search, words[1:]))


def _behind(words: Sequence[str]) -> list[str] | None:
    """Return the command that a wrapper such as ``sudo`` runs; ``None``: there is no wrapper."""
    wrapper = effects().wrappers.get(posixpath.basename(words[0])) if words else None
    if wrapper is None:
        return None
    return list(words[_end_of_options(words, wrapper) + wrapper.skip :])


def _end_of_options(words: Sequence[str], wrapper: Wrapper) -> int:
    index = 1
    while index < len(words):
        word = words[index]
        if word == "--":
            return index + 1
        if word.startswith("-") and len(word) > 1:
            takes_value = not word.startswith("--") and word[-1] in wrapper.value
            index += 2 if takes_value else 1
        elif wrapper.assignments and _ASSIGNMENT.match(word):
            index += 1
        else:
            break
    return index


def unwrapped(words: Sequence[str]) -> list[str]:
    """Return the command behind all wrappers."""
    rest = list(words)
    for _ in range(MAX_WRAPPERS):
        inner = _behind(rest)
        if inner is None:
            break
        rest = inner
    return rest


def is_harmless_variable(name: str) -> bool:
    """Whether an assignment in front of a command changes neither what it runs nor what
    that loads.
    """
    return name in effects().lists["harmless_variables"] or name.startswith("LC_")


def is_harmless_assignment(text: str) -> bool:
    """Whether ``NAME=value`` only chooses a language, a time zone or the like.

    Its value can name no file.
    """
    match = _PLAIN_ASSIGNMENT.match(text)
    if match is None:
        return False
    return is_harmless_variable(match[1]) or text in effects().lists["harmless_assignments"]


def script_of(words: Sequence[str], depth: int = 0) -> str | None:
    """Return the script that a command runs, where it is written out.

    That is TEXT in ``sh -c TEXT`` and ``eval TEXT``, also behind wrappers.
    """
    if not words or depth > MAX_WRAPPERS:
        return None
    name = posixpath.basename(words[0])
    if name == "eval":
        return " ".join(words[1:]) or None
    if name == "trap" and len(words) > 2:
        return words[1]
    if name in effects().lists["shells"]:
        return _shell_script(words)
    if name in effects().wrappers or name == "find":
        return _wrapped_script(name, words, depth)
    return None


def _shell_script(words: Sequence[str]) -> str | None:
    for index, word in enumerate(words):
        if index and _SCRIPT_OPTION.match(word):
            return words[index + 1] if index + 1 < len(words) else None
    return None


def _wrapped_script(name: str, words: Sequence[str], depth: int) -> str | None:
    for index, word in enumerate(words[1:], start=1):
        if posixpath.basename(word) in effects().lists["shells"] or word == "eval":
            return script_of(words[index:], depth + 1)
        rest = " ".join(words[index + 1 :])
        # env -S "rm -rf x" splits the text into words
        if name == "env" and word.startswith("-S"):
            return word[2:] or rest
        if name == "env" and word.startswith("--split-string"):
            return word.partition("=")[2] or rest
    return None
