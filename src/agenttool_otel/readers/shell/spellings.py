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
from agenttool_otel.readers.shell.harmless import behind_harmless
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
_MODULE = re.compile(r"-[A-Za-z]*m(?P<module>.*)", re.DOTALL)
_VERSION = re.compile(r"-?[0-9]+(?:\.[0-9]+)*\Z")
_ENDING = re.compile(r"\.(?:exe|cmd|bat|com)\Z")
_LINE = re.compile(r"[\s;|&]")
_ALIAS = re.compile(r"alias\.[^=]+=(?P<meaning>.*)", re.DOTALL)
_SHELL_OPTION = re.compile(r"-[eluxi]+|--login|--norc|--noprofile")
_SHELL_SCRIPT = re.compile(r"-[eluxi]*c")
_SCRIPT_RUNNERS = ("npm", "pnpm", "yarn", "bun")

Words = tuple[str, ...]


class Spellings(NamedTuple):
    """The tables (data/spellings.toml)."""

    runs: dict[Words, int]
    lists: dict[str, frozenset[str]]
    values: dict[str, frozenset[str]]
    flags: dict[str, frozenset[str]]
    same: dict[Words, str]
    commanding: frozenset[str]


@cache
def _table() -> Spellings:
    from agenttool_otel.readers.shell.actions import actions

    raw = load_table(__package__, "data/spellings.toml")
    runs = {}
    for name, wrapper in effects().wrappers.items():
        runs[(name,)] = wrapper.skip
    for name, skip in raw["runs"].items():
        runs[tuple(name.split())] = skip
    same = {}
    for name, word in raw["same"].items():
        same[tuple(name.split())] = word
    lists = {}
    for name, words in raw["lists"].items():
        lists[name] = frozenset(words)
    commanding = {
        *lists["commanding"],
        *lists["targets"],
        *with_commands(),
        *actions().words,
    }
    parts = {
        "runs": runs,
        "lists": lists,
        "same": same,
        "commanding": commanding,
    }
    return row_of(Spellings, {**raw, **parts})


def spellings(words: Sequence[str]) -> list[list[str]] | None:
    """Return the ways to read a command, first as it is written; ``None`` where there are
    too many.
    """
    seen: set[Words] = set()
    # as keys, for their order
    kept: dict[Words, None] = {}
    waiting = [tuple(words)]
    while waiting:
        argv = waiting.pop()
        if not argv or argv in seen:
            continue
        seen.add(argv)
        if kept:
            kept[argv[:MAX_ENTRY_WORDS]] = None
        else:
            kept[argv] = None
        if len(seen) > _MAX_READ or len(kept) > _MAX_SPELLINGS:
            return None
        waiting += reversed(list(_readings(argv)))
    return [list(argv) for argv in kept]


def _readings(argv: Words) -> Iterator[Words]:
    """Yield what a command may be called instead, one step further."""
    for name in _names(argv[0]):
        yield (name, *argv[1:])
    yield from _without_options(argv)
    yield from _behind(argv)


def _names(program: str) -> Iterator[str]:
    """Yield a program's other names: without its directory, its version, the ending that Windows
    gives it.
    """
    base = posixpath.basename(program.replace("\\", "/")) or program
    yield base
    lower = base.lower()
    yield _ENDING.sub("", lower)
    # python3.12, gcc-12, jest@29
    plain = _VERSION.sub("", lower.partition("@")[0])
    if plain:
        yield plain
    # ld-linux-x86-64.so.2 runs the program that its words name
    if lower.startswith("ld-") and ".so" in lower:
        yield "ld.so"


def _ends_of_options(argv: Words, start: int, flags: frozenset[str] = frozenset()) -> Iterator[int]:
    """Yield the places at which the options of a command may end.

    Args:
        argv: the command.
        start: where its options begin.
        flags: options that take no value.
    """
    index = start
    while index < len(argv):
        word = argv[index]
        if word == "--":
            yield index + 1
            return
        if _OPTION.match(word) or _ASSIGNMENT.match(word):
            index += 1
            continue
        option = argv[index - 1] if index > start else ""
        takes_value = _may_take_value(option)
        # git -C src log
        if takes_value and option in _taking(argv[0]):
            index += 1
            continue
        yield index
        if not takes_value or option in flags or option.startswith("--no-"):
            return
        index += 1


def _may_take_value(option: str) -> bool:
    """Whether the word behind an option may be its value: not behind ``--depth=1``."""
    return _OPTION.match(option) is not None and "=" not in option


@cache
def _taking(program: str) -> frozenset[str]:
    """Return the options of a program that are known to take the next word."""
    options = set(_table().values.get(program, ()))
    wrapper = effects().wrappers.get(program)
    if wrapper is not None:
        for letter in wrapper.value:
            options.add(f"-{letter}")
    return frozenset(options)


def _without_options(argv: Words) -> Iterator[Words]:
    """Yield a command without the options in front of its sub-command, or of its first operand."""
    name = argv[0]
    if name not in _table().commanding:
        ends = [end for end in _ends_of_options(argv, 1) if end > 1]
        for end in ends[:_MAX_VALUES]:
            yield (name, *argv[end:])
        return
    yield from _without_command_options(argv)
    yield from _other_commands(argv)
    # make -j 4 clean test: each target may be the one that counts
    if name in _table().lists["targets"]:
        for index in range(2, min(len(argv), _MAX_VALUES + 2)):
            yield (name, *argv[index:])


def _without_command_options(argv: Words) -> Iterator[Words]:
    """Yield a command without the options in front of each of its sub-commands."""
    table = _table()
    flags = table.flags["*"] | table.flags.get(argv[0], frozenset())
    for depth in range(1, min(len(argv), _MAX_DEPTH + 1)):
        # git -C src log has no sub-command -C
        if depth > 1 and _OPTION.match(argv[depth - 1]):
            break
        for end in _ends_of_options(argv, depth, flags):
            if end > depth:
                yield argv[:depth] + argv[end:]


def _other_commands(argv: Words) -> Iterator[Words]:
    """Yield the other names of a program's sub-command."""
    name = argv[0]
    same = _table().same.get(argv[:2])
    if same is not None:
        yield (name, same, *argv[2:])
    command = argv[1:2]
    # docker container rm is docker rm, docker image rm is docker rmi
    if name in ("docker", "podman") and command in (("container",), ("image",)):
        yield (name, *argv[2:])
        if argv[1:3] == ("image", "rm"):
            yield (name, "rmi", *argv[3:])
    # npm run test is npm test
    if name in _SCRIPT_RUNNERS and command == ("run",) and len(argv) > 2:
        yield (name, *argv[2:])


def _behind(argv: Words) -> Iterator[Words]:
    """Yield the commands that a command runs, as far as its words show."""
    name = argv[0]
    yield from _behind_runner(argv)
    yield from _by_option(argv)
    yield from _by_interpreter(argv)
    is_runner = _is_runner(argv)
    # some-tool -- rm x
    if "--" in argv and _may_run(name, is_runner=is_runner):
        yield _after(argv, argv.index("--"))
    reads_text = name in effects().lists["shells"] or name in ("eval", "trap", "alias")
    if is_runner or reads_text:
        yield from _by_text(argv)


def _may_run(name: str, *, is_runner: bool) -> bool:
    """Whether the words behind ``--`` may be a command that a program runs."""
    # git checkout -- rm
    if name == "git":
        return False
    lists = effects().lists
    if name in lists["known"] and name not in lists["executes"]:
        return False
    return is_runner or name not in read_only()


def _is_runner(argv: Words) -> bool:
    """Whether the words begin as those of a program that runs another one."""
    runs = _table().runs
    return any(argv[:size] in runs for size in (1, 2, 3))


def _behind_runner(argv: Words) -> Iterator[Words]:
    """Yield the command behind ``sudo -u root`` or ``npx -y``."""
    for size in (1, 2, 3):
        skip = _table().runs.get(argv[:size])
        if skip is None:
            continue
        for end in _ends_of_options(argv, size):
            yield _after(argv, end + skip)
        # timeout make, where the number that it skips is missing
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
    """Return the words from a place on, without ``--`` at their beginning."""
    rest = argv[index:]
    if rest[:1] == ("--",):
        return rest[1:]
    return rest


def _lines(text: str) -> Iterator[Words]:
    """Yield the commands of a text that some program gives to a shell."""
    for item in survey(text):
        yield tuple(item.words)


def _by_option(argv: Words) -> Iterator[Words]:
    """Yield what options such as ``find -exec`` and ``git rebase --exec`` name."""
    if argv[0] in ("find", "fd", "fdfind", "start-stop-daemon", "gfind"):
        yield from _by_exec(argv)
    if argv[0] != "git":
        return
    for index, word in enumerate(argv[1:], start=1):
        option, equals, value = word.partition("=")
        if option not in _table().lists["git_texts"]:
            continue
        # git rebase --exec 'rm -rf x'
        if not equals:
            value = "".join(argv[index + 1 : index + 2])
        yield from _of_git(argv, value)


def _by_exec(argv: Words) -> Iterator[Words]:
    """Yield the commands that a program runs for each file that it finds."""
    for index, word in enumerate(argv[1:], start=1):
        option, equals, value = word.partition("=")
        if option not in _table().lists["exec_options"]:
            continue
        words = _until_end_of_exec(argv[index + 1 :])
        # fd --exec=rm
        if equals:
            words = (value, *words)
        yield words


def _until_end_of_exec(words: Words) -> Words:
    """Return the words before the ``;`` or ``+`` that ends ``-exec``."""
    for index, word in enumerate(words):
        if word in (";", "+", "\\;"):
            return words[:index]
    return words


def _of_git(argv: Words, value: str) -> Iterator[Words]:
    """Yield what a setting or an option of git names: a command line, or what an alias of the line
    stands for.
    """
    alias = _ALIAS.match(value)
    if alias is None:
        yield from _lines(value)
        return
    meaning = alias["meaning"]
    # git -c alias.x='!rm -rf .' x
    if meaning.startswith("!"):
        yield from _lines(meaning[1:])
    else:
        yield ("git", *meaning.split(), *argv[3:])


def _by_interpreter(argv: Words) -> Iterator[Words]:
    """Yield the module or script that an interpreter runs, as a program."""
    lists = _table().lists
    name = argv[0]
    # py, uv run python
    for size in (1, 2):
        if " ".join(argv[:size]) in lists["pythons"]:
            yield ("python", *argv[size:])
    is_python = _PYTHON.fullmatch(name) is not None
    if is_python:
        yield from _by_module(argv)
    if is_python or name in lists["interpreters"] or name in effects().lists["shells"]:
        for end in _ends_of_options(argv, 1):
            yield argv[end:]


def _by_module(argv: Words) -> Iterator[Words]:
    """Yield the module behind ``-m`` as a program: ``python -m pip`` is ``pip``."""
    for index, word in enumerate(argv):
        match = _MODULE.match(word)
        if match is None:
            continue
        rest = argv[index + 1 :]
        # python -mpip install x
        attached = match["module"]
        if attached:
            rest = (attached, *rest)
        if rest:
            yield rest
            # python -m pytest.__main__
            yield (rest[0].partition(".")[0], *rest[1:])
        return


def plain_words(words: Sequence[str], assignments: Sequence[str]) -> list[str]:
    """Return the words behind harmless wrappers, for permissions; none where something else stands
    before them.

    Args:
        words: the command, its name first.
        assignments: those before the command, as ``NAME=value``.
    """
    if not all(map(is_harmless_assignment, assignments)):
        return []
    rest = list(words)
    for _ in range(MAX_WRAPPERS + 1):
        inner = behind_harmless(rest)
        if inner is None:
            break
        rest = inner
    if not rest:
        return []
    return [base_name(rest[0]), *rest[1:]]


def runs_one_script(words: Sequence[str]) -> bool:
    """Whether plain words are a shell that runs one text, ``bash -lc TEXT``, and has no
    other words.
    """
    if len(words) < 3 or words[0] not in effects().lists["shells"]:
        return False
    options = list(words[1:-2])
    while options:
        # bash -o pipefail -c TEXT
        if options[:2] == ["-o", "pipefail"]:
            options = options[2:]
        elif _SHELL_OPTION.fullmatch(options[0]):
            options = options[1:]
        else:
            return False
    return _SHELL_SCRIPT.fullmatch(words[-2]) is not None
