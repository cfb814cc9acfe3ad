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
    if directory in _TRUSTED_DIRECTORIES:
        return base
    return name


def add_effects(words: Sequence[str], warnings: Warnings, depth: int = 0) -> None:
    """Add what the tables hold of a command that is not proven to only read.

    An unknown program may do anything.

    Args:
        words: the command, its name first.
        warnings: gets what the command may do.
        depth: how many wrappers stand in front of it.
    """
    if not words:
        return
    name = posixpath.basename(words[0]) or words[0]
    lists = effects().lists
    # del and rmdir /s are the Windows interpreter's, whatever a program of that name does
    foreign = name.lower() in lists["foreign"]
    unknown = name not in lists["known"] or foreign
    if foreign or _is_cmdlet(name):
        warnings.other_shell = True
    if unknown or name in lists["executes"]:
        warnings.executes = True
    if unknown:
        warnings.network = True
    if _uses_network(name, words):
        warnings.network = warnings.connects = True
    if _destroys(name, words):
        warnings.destructive = True
    if _reveals(name, words):
        warnings.sensitive = True
    if depth < MAX_WRAPPERS:
        _add_inner_effects(name, words, warnings, depth + 1)


def _uses_network(name: str, words: Sequence[str]) -> bool:
    if name in effects().lists["network"]:
        return True
    # git fetch, but not git log
    return _any_matches(effects().network_words.get(name), words)


def _add_inner_effects(name: str, words: Sequence[str], warnings: Warnings, depth: int) -> None:
    """Add what is known of the commands that a command runs."""
    inner = _behind(words)
    if inner is not None:
        add_effects(inner, warnings, depth)
    if name != "find":
        return
    # find . -name '*.tmp' -exec rm {} +
    actions = effects().lists["find_actions"]
    for index, word in enumerate(words):
        if word in actions:
            add_effects(words[index + 1 :], warnings, depth)


def _is_cmdlet(name: str) -> bool:
    """Whether a name looks like PowerShell's: ``Remove-Item``."""
    verb, dash, noun = name.lower().partition("-")
    if not dash or not noun.isalpha() or not name[:1].isupper():
        return False
    return verb in effects().lists["powershell_verbs"]


def _destroys(name: str, words: Sequence[str]) -> bool:
    if name in effects().lists["destructive"]:
        return True
    # mkfs.ext4
    if name.startswith("mkfs."):
        return True
    triggers = effects().destructive_words.get(name, ())
    for word in words[1:]:
        for trigger in triggers:
            if _is_triggered(word, trigger):
                return True
    return False


def _is_triggered(word: str, trigger: str) -> bool:
    """Whether a word is an option that destroys, also shortened or among other letters."""
    if word == trigger:
        return True
    if trigger.startswith("--"):
        # --forc, --force-with-lease=main
        option = word.partition("=")[0]
        if len(option) <= 3:
            return False
        return trigger.startswith(option) or option.startswith(trigger)
    is_letter = len(trigger) == 2 and trigger[0] == "-"
    if is_letter and _CLUSTER.match(word):
        # -rf holds -f
        return trigger[1] in word[:8]
    return False


def _reveals(name: str, words: Sequence[str]) -> bool:
    """Whether a command prints the environment, or can carry data out."""
    lists = effects().lists
    prints = name in lists["prints_environment"] or name in lists["sends"]
    if prints and not _only_sets(words):
        return True
    return _any_matches(effects().sensitive_words.get(name), words)


def _only_sets(words: Sequence[str]) -> bool:
    """Whether it is ``env CI=1 COMMAND``, which prints nothing itself."""
    if base_name(words[0]) != "env":
        return False
    rest = list(words[1:])
    while rest and is_harmless_assignment(rest[0]):
        rest.pop(0)
    if not rest:
        return False
    # env -u PATH, env PATH=. make
    return not rest[0].startswith("-") and "=" not in rest[0]


def _any_matches(pattern: re.Pattern[str] | None, words: Sequence[str]) -> bool:
    """Whether a pattern, where there is one, is found in a word behind the command's name."""
    if pattern is None:
        return False
    return any(map(pattern.search, words[1:]))


def _behind(words: Sequence[str]) -> list[str] | None:
    """Return the command that a wrapper such as ``sudo`` runs; ``None``: there is no wrapper."""
    if not words:
        return None
    wrapper = effects().wrappers.get(posixpath.basename(words[0]))
    if wrapper is None:
        return None
    # timeout 5 make: one word between its options and the command
    start = _end_of_options(words, wrapper) + wrapper.skip
    return list(words[start:])


def _end_of_options(words: Sequence[str], wrapper: Wrapper) -> int:
    """Return where the words behind a wrapper's options begin."""
    index = 1
    while index < len(words):
        word = words[index]
        if word == "--":
            return index + 1
        if word.startswith("-") and len(word) > 1:
            index += 1
            # sudo -u root make
            if not word.startswith("--") and word[-1] in wrapper.value:
                index += 1
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
    # LC_ALL=C sort
    if name.startswith("LC_"):
        return True
    return name in effects().lists["harmless_variables"]


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

    Args:
        words: the command, its name first.
        depth: how many wrappers stand in front of it.
    """
    if not words or depth > MAX_WRAPPERS:
        return None
    name = posixpath.basename(words[0])
    if name == "eval":
        return " ".join(words[1:]) or None
    # trap 'rm -rf x' EXIT
    if name == "trap" and len(words) > 2:
        return words[1]
    if name in effects().lists["shells"]:
        return _shell_script(words)
    if name in effects().wrappers or name == "find":
        return _wrapped_script(name, words, depth)
    return None


def _shell_script(words: Sequence[str]) -> str | None:
    for index, word in enumerate(words[1:], start=1):
        if not _SCRIPT_OPTION.match(word):
            continue
        if index + 1 < len(words):
            return words[index + 1]
        return None
    return None


def _wrapped_script(name: str, words: Sequence[str], depth: int) -> str | None:
    shells = effects().lists["shells"]
    for index, word in enumerate(words[1:], start=1):
        # find . -exec sh -c 'rm {}' ;
        if posixpath.basename(word) in shells or word == "eval":
            return script_of(words[index:], depth + 1)
        if name != "env":
            continue
        rest = " ".join(words[index + 1 :])
        # env -S "rm -rf x" splits the text into words
        if word.startswith("-S"):
            return word[2:] or rest
        if word.startswith("--split-string"):
            return word.partition("=")[2] or rest
    return None
