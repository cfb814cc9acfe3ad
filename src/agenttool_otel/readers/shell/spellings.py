"""The words of a command in every way in which a list may name it.

A restriction holds if any of these begins with its words: as written, with the program's name
alone, behind whatever runs another program, without the options in front of a sub-command. A
permission sees through harmless wrappers alone. What a word is, an option's value or the
sub-command, is not always known; then both readings are given.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from agenttool_otel.readers.shell.effects import MAX_WRAPPERS, base_name, is_harmless_assignment
from agenttool_otel.readers.shell.survey import survey
from agenttool_otel.readers.shell.tables import effects, read_only, with_commands
from agenttool_otel.values.tables import load_table, row_of

MAX_ENTRY_WORDS = 12
"""So many words of a spelling are kept, and so many may an entry of a list that restricts have."""

_MAX_SPELLINGS = 200
_MAX_READ = 600
_MAX_VALUES = 8  # options of an ordinary program whose next word is tried as an operand
_MAX_DEPTH = 3  # sub-commands below each other

_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.-]*\+?=")
_OPTION = re.compile(r"[-+].")
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_MODULE = re.compile(r"-[A-Za-z]*m(.*)", re.DOTALL)
_VERSION = re.compile(r"-?[0-9]+(?:\.[0-9]+)*\Z")
_ENDING = re.compile(r"\.(?:exe|cmd|bat|com)\Z")
_LINE = re.compile(r"[\s;|&]")
_ALIAS = re.compile(r"alias\.[^=]+=(.*)", re.DOTALL)
_SHELL_OPTION = re.compile(r"-[eluxi]+|--login|--norc|--noprofile")
_SHELL_SCRIPT = re.compile(r"-[eluxi]*c")

Words = tuple[str, ...]


class Spellings(NamedTuple):
    """The tables (data/spellings.toml)."""

    runs: dict[Words, int]
    lists: dict[str, frozenset[str]]
    values: dict[str, frozenset[str]]
    flags: dict[str, frozenset[str]]
    same: dict[Words, str]
    harmless: dict[str, re.Pattern[str]]
    commanding: frozenset[str]


@cache
def _table() -> Spellings:
    from agenttool_otel.readers.shell.actions import actions

    raw = load_table(__package__, "data/spellings.toml")
    wrappers = {(name,): wrapper.skip for name, wrapper in effects().wrappers.items()}
    lists = {name: frozenset(words) for name, words in raw["lists"].items()}
    return row_of(
        Spellings,
        {
            **raw,
            "runs": {
                **wrappers,
                **{tuple(name.split()): skip for name, skip in raw["runs"].items()},
            },
            "lists": lists,
            "same": {tuple(name.split()): word for name, word in raw["same"].items()},
            "commanding": lists["commanding"]
            | with_commands()
            | actions().words.keys()
            | lists["targets"],
        },
    )


def spellings(words: Sequence[str]) -> list[list[str]] | None:
    """Return the ways to read a command, first as it is written; ``None`` where there are
    too many.
    """
    found: dict[Words, None] = {}
    kept: dict[Words, None] = {}
    waiting = [tuple(words)]
    while waiting:
        argv = waiting.pop()
        if not argv or argv in found:
            continue
        found[argv] = None
        kept[argv[:MAX_ENTRY_WORDS] if kept else argv] = None
        if len(found) > _MAX_READ or len(kept) > _MAX_SPELLINGS:
            return None
        waiting += reversed(list(_readings(argv)))
    return [list(argv) for argv in kept]


def _readings(argv: Words) -> Iterator[Words]:
    """Yield what a command may be called instead, one step further."""
    yield from (name + argv[1:] for name in _names(argv[0]))
    yield from _without_options(argv)
    yield from _behind(argv)


def _names(program: str) -> Iterator[Words]:
    """Yield a program's other names: without its directory, its version, the ending that Windows
    gives it.
    """
    base = posixpath.basename(program.replace("\\", "/")) or program
    yield (base,)
    lower = base.lower()
    yield (_ENDING.sub("", lower),)
    plain = _VERSION.sub("", lower.partition("@")[0])  # python3.12, gcc-12, jest@29
    if plain:
        yield (plain,)
    if lower.startswith("ld-") and ".so" in lower:
        yield ("ld.so",)


def _ends_of_options(argv: Words, start: int, flags: frozenset[str] = frozenset()) -> Iterator[int]:
    """Yield the places at which the options from ``start`` on may end; ``flags`` take no value."""
    index = start
    while index < len(argv):
        word, before = argv[index], argv[index - 1]
        if word == "--":
            yield index + 1
            return
        if _OPTION.match(word) or _ASSIGNMENT.match(word):
            index += 1
            continue
        takes_value = index > start and _OPTION.match(before) is not None and "=" not in before
        if takes_value and before in _taking(argv[0]):
            index += 1
            continue
        yield index
        if not takes_value or before in flags or before.startswith("--no-"):
            return
        index += 1


@cache
def _taking(program: str) -> frozenset[str]:
    """Return the options of a program that are known to take the next word."""
    wrapper = effects().wrappers.get(program)
    letters = {f"-{letter}" for letter in wrapper.value} if wrapper is not None else set()
    return _table().values.get(program, frozenset()) | letters


def _without_options(argv: Words) -> Iterator[Words]:
    """Yield a command without the options in front of its sub-command, or of its first operand."""
    table, name = _table(), argv[0]
    if name not in table.commanding:
        ends = [end for end in _ends_of_options(argv, 1) if end > 1]
        yield from (argv[:1] + argv[end:] for end in ends[:_MAX_VALUES])
        return
    flags = table.flags["*"] | table.flags.get(name, frozenset())
    for depth in range(1, min(len(argv), _MAX_DEPTH + 1)):
        if _OPTION.match(argv[depth - 1]) and depth > 1:
            break
        yield from (
            argv[:depth] + argv[end:] for end in _ends_of_options(argv, depth, flags) if end > depth
        )
    if (word := table.same.get(argv[:2])) is not None:
        yield (name, word, *argv[2:])
    if name in ("docker", "podman") and argv[1:2] in (("container",), ("image",)):
        yield (name, *argv[2:])
        yield from [(name, "rmi", *argv[3:])] if argv[1:3] == ("image", "rm") else ()
    if name in ("npm", "pnpm", "yarn", "bun") and argv[1:2] == ("run",) and len(argv) > 2:
        yield (name, *argv[2:])
    if name in table.lists["targets"]:
        yield from ((name, *argv[index:]) for index in range(2, min(len(argv), _MAX_VALUES + 2)))


def _behind(argv: Words) -> Iterator[Words]:
    """Yield the commands that a command runs, as far as its words show."""
    name = argv[0]
    yield from _behind_runner(argv)
    yield from _by_option(argv)
    yield from _by_interpreter(argv)
    runner = _is_runner(argv)
    lists = effects().lists
    executes = name not in lists["known"] or name in lists["executes"]
    # some-tool -- rm x
    if executes and "--" in argv and name != "git" and (runner or name not in read_only()):
        yield _after(argv, argv.index("--"))
    if runner or name in lists["shells"] or name in ("eval", "trap", "alias"):
        yield from _by_text(argv)


def _is_runner(argv: Words) -> bool:
    return any(argv[:size] in _table().runs for size in (1, 2, 3))


def _behind_runner(argv: Words) -> Iterator[Words]:
    """Yield the command behind ``sudo -u root`` or ``npx -y``."""
    for size in (1, 2, 3):
        skip = _table().runs.get(argv[:size])
        if skip is None:
            continue
        for end in _ends_of_options(argv, size):
            yield _after(argv, end + skip)
        if skip:
            for end in _ends_of_options(argv, size):
                yield _after(argv, end)


def _by_text(argv: Words) -> Iterator[Words]:
    """Yield the commands in the words of ``bash -c``, ``eval`` and ``alias``."""
    for word in argv[1:]:
        text = word
        if _ASSIGNMENT.match(word) or word.startswith("--"):
            text = word.partition("=")[2]
        if _LINE.search(text) or argv[0] == "alias":
            yield from _lines(text)


def _after(argv: Words, index: int) -> Words:
    return argv[index + 1 :] if argv[index : index + 1] == ("--",) else argv[index:]


def _lines(text: str) -> Iterator[Words]:
    """Yield the commands of a text that some program gives to a shell."""
    for item in survey(text):
        yield tuple(item.words)


def _by_option(argv: Words) -> Iterator[Words]:
    """Yield what options such as ``find -exec`` and ``git rebase --exec`` name."""
    table, name = _table().lists, argv[0]
    for index, word in enumerate(argv[1:], start=1):
        option, equals, value = word.partition("=")
        following = argv[index + 1 : index + 2]
        if (
            name in ("find", "fd", "fdfind", "start-stop-daemon", "gfind")
            and option in table["exec_options"]
        ):
            rest = argv[index + 1 :]
            end = next((i for i, one in enumerate(rest) if one in (";", "+", "\\;")), len(rest))
            yield ((value,) if equals else ()) + rest[:end]
        if name == "git" and option in table["git_texts"]:
            yield from _of_git(argv, value if equals else "".join(following))


def _of_git(argv: Words, value: str) -> Iterator[Words]:
    """Yield what a setting or an option of git names: a command line, or what an alias of the line
    stands for.
    """
    alias = _ALIAS.match(value)
    if alias is None:
        yield from _lines(value)
    elif alias[1].startswith("!"):
        yield from _lines(alias[1][1:])
    else:
        yield ("git", *alias[1].split(), *argv[3:])


def _by_interpreter(argv: Words) -> Iterator[Words]:
    """Yield the module or script that an interpreter runs, as a program."""
    table, name = _table().lists, argv[0]
    python = _PYTHON.fullmatch(name) is not None
    for size in (1, 2):
        if " ".join(argv[:size]) in table["pythons"]:
            yield ("python", *argv[size:])
    if python:
        yield from _by_module(argv)
    if python or name in table["interpreters"] or name in effects().lists["shells"]:
        for end in _ends_of_options(argv, 1):
            yield argv[end:]


def _by_module(argv: Words) -> Iterator[Words]:
    """Yield the module behind ``-m`` as a program: ``python -m pip`` is ``pip``."""
    for index, word in enumerate(argv):
        match = _MODULE.match(word)
        if match is None:
            continue
        rest = (match[1], *argv[index + 1 :]) if match[1] else argv[index + 1 :]
        if rest:
            yield rest
            yield (rest[0].partition(".")[0], *rest[1:])
        return


def plain_words(words: Sequence[str], assignments: Sequence[str]) -> list[str]:
    """Return the words behind harmless wrappers, for permissions; none where something else stands
    before them.

    ``assignments`` are those before the command, as ``NAME=value``.
    """
    if not all(map(is_harmless_assignment, assignments)):
        return []
    rest = list(words)
    for _ in range(MAX_WRAPPERS + 1):
        if (inner := _behind_harmless(rest)) is None:
            break
        rest = inner
    return [base_name(rest[0]), *rest[1:]] if rest else []


def _behind_harmless(words: list[str]) -> list[str] | None:
    """Return what stands behind one wrapper that changes nothing, or ``None``."""
    name = base_name(words[0]) if words else ""
    pattern = _table().harmless.get(name)
    if pattern is None:
        return None
    shown = "".join(f"{word} " for word in words[1:])
    between = pattern.match(shown)
    if between is None:
        return None
    count = between[0].count(" ")
    # a blank within a word is none between two
    if "".join(f"{word} " for word in words[1 : count + 1]) != between[0]:
        return None
    rest = words[count + 1 :]
    while name == "env" and rest and is_harmless_assignment(rest[0]):
        rest = rest[1:]
    return rest if rest and not rest[0].startswith("-") and "=" not in rest[0] else None


def runs_one_script(words: Sequence[str]) -> bool:
    """Whether plain words are a shell that runs one text, ``bash -lc TEXT``, and has no
    other words.
    """
    if len(words) < 3 or words[0] not in effects().lists["shells"]:
        return False
    options, last = list(words[1:-2]), words[-2]
    while options and (_SHELL_OPTION.fullmatch(options[0]) or options[:2] == ["-o", "pipefail"]):
        options = options[2 if options[0] == "-o" else 1 :]
    return not options and _SHELL_SCRIPT.fullmatch(last) is not None
