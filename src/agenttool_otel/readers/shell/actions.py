"""What a command does that is not proven to only read: its category, and the places it uses.

The tables (``data/actions.toml``) have the operands of common programs. For a program, option or
word that is not in them, not all places are known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from agenttool_otel.readers.shell.effects import (
    is_harmless_assignment,
    is_harmless_variable,
    unwrapped,
)
from agenttool_otel.readers.shell.options import Option, read_words
from agenttool_otel.readers.shell.reviewed.words import STANDARD_INPUT, review
from agenttool_otel.readers.shell.sed import sed_edit
from agenttool_otel.readers.shell.syntax import Word
from agenttool_otel.readers.shell.tables import Spec, effects, spec_of
from agenttool_otel.readers.shell.verdict import FileAccess, Refused, Tree, Verdict
from agenttool_otel.values.tables import load_table, row_of

_IN_PLACE = re.compile(r"-[nErsuz]*i|--in-place")
# *, .*, .[!.]*, .??*: all that a directory holds
_ALL_FILES = re.compile(r"(?:.*/)?(?:\*|\.\*|\.\[!\.\]\*|\.\?\?\*)\Z")
_PYTHON = re.compile(r"python[0-9.]*|pypy3?")
# timeout -k 5 -s TERM 10m, nice -n 5, xargs -0 -n1, stdbuf -oL
_WRAPPER_LETTER = r"-(?:[nkscpevi]|[oei][0L]|[nc]?\d+)"
_WRAPPER_TIME = r"\d+(?:\.\d+)?[smhd]?"
_WRAPPER_SIGNAL = r"[A-Z]{3,7}"
_WRAPPER_LONG = r"--(?:foreground|preserve-status|verbose)"
_WRAPPER_WORD = re.compile(
    "|".join((_WRAPPER_LETTER, _WRAPPER_TIME, _WRAPPER_SIGNAL, _WRAPPER_LONG))
)
_OPENS_PAGER = re.compile("-[A-Za-z0-9]*O")  # git grep -O


@dataclass(frozen=True, slots=True)
class Action:
    """How one program's operands name places (data/actions.toml explains the keys)."""

    spec: Spec
    category: str
    operation: str
    first: str | None = None
    last: str | None = None
    into: bool = False
    tree: frozenset[str] = frozenset()
    changes: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


class Actions(NamedTuple):
    """The whole table."""

    rows: dict[str, Action]
    categories: dict[str, str]
    """The category of a program."""
    words: dict[str, dict[str, str]]
    """The category of a program by its first word."""


@cache
def actions() -> Actions:
    """Load the table, once."""
    raw = load_table(__package__, "data/actions.toml")
    categories = _by_word(raw.pop("categories"))
    words = {program: _by_word(groups) for program, groups in raw.pop("words").items()}
    rows = {name: row_of(Action, {**row, "spec": spec_of(row)}) for name, row in raw.items()}
    return Actions(rows, categories, words)


def _by_word(categories: dict[str, list[str]]) -> dict[str, str]:
    found = {}
    for category, words in categories.items():
        for word in words:
            found[word] = category
    return found


def describe(words: list[Word], assignments: Sequence[str], verdict: Verdict) -> None:
    """Add category and places of a command that is not proven to only read.

    Args:
        words: its words.
        assignments: the names of variables that are set for it and may not be harmless.
        verdict: what is known of it; category, accesses and words that are not reviewed are added.
    """
    texts = [word.text for word in words]
    in_front = len(texts) - len(unwrapped(texts))
    inner = words[in_front:]
    if not inner:
        verdict.complete = False
        return
    _describe_inner(inner, verdict)
    _describe_wrappers(texts[:in_front], verdict)
    wrapper = posixpath.basename(texts[0])
    if in_front and wrapper in effects().lists["privileged"]:
        verdict.category = "privileged"
    elif not all(map(is_harmless_variable, assignments)):
        # LD_PRELOAD, PAGER and the like name what is run: who agreed to tests and scripts did not
        # agree to that.
        names_program = any(map(effects().program_variables.fullmatch, assignments))
        verdict.category = "unknown" if names_program else "runner"
        verdict.complete = False


def _describe_wrappers(texts: list[str], verdict: Verdict) -> None:
    """Add what the words in front of a wrapped command do."""
    if not texts:
        return
    if posixpath.basename(texts[0]) in ("xargs", "parallel"):
        verdict.complete = False  # its input is added to the words
        verdict.unreviewed.append(STANDARD_INPUT)
    odd = [text for text in texts if not _is_plain_wrapper(text)]
    if odd:
        verdict.complete = False  # it opens files or goes elsewhere by itself, as strace -o does
        verdict.unreviewed += odd


def _describe_inner(words: list[Word], verdict: Verdict) -> None:
    name = posixpath.basename(words[0].text)
    arguments = words[1:]
    row = actions().rows.get(name)
    if name == "find":
        _find(words, verdict)
    elif row is not None and (name != "sed" or _edits_in_place(arguments)):
        _RowReader(row, name, verdict).read(arguments)
    else:
        _describe_by_category(name, words, verdict)


def _edits_in_place(arguments: list[Word]) -> bool:
    return any(_IN_PLACE.match(word.text) for word in arguments)


def _describe_by_category(name: str, words: list[Word], verdict: Verdict) -> None:
    """Describe a program that has no row of its own."""
    arguments = words[1:]
    verdict.category = _category(name, words)
    verdict.complete = verdict.category == "vcs_local"
    if verdict.category == "vcs_local":
        _git_places(arguments, verdict)
    only_options = all(word.text.startswith("-") for word in arguments)
    if name in effects().lists["shells"] and only_options and verdict.script is None:
        verdict.category = "unknown"  # runs whatever reaches it
    else:
        _review(words, verdict)
    if verdict.category == "runner":
        _script_place(arguments, verdict)


def _review(words: list[Word], verdict: Verdict) -> None:
    """Add what the reviewed tables hold of a program's words."""
    read = review([word.text for word in words])
    # as keys, for their order
    unreviewed = dict.fromkeys(read.unreviewed)
    for word in words[1:]:
        # pytest * beside a file "-p x"
        if word.glob_first:
            unreviewed[word.text] = None
    verdict.unreviewed = list(unreviewed)
    if read.sends:
        verdict.warnings.network = verdict.warnings.connects = True
    globs = {word.text for word in words if word.glob}
    for place, operation in read.places:
        verdict.accesses.append(FileAccess(place, operation, glob=place in globs))
        if operation == "delete_tree":
            verdict.category = "tree_deleter"
            verdict.warnings.destructive = True


def _is_plain_wrapper(word: str) -> bool:
    """Whether a word in front of a wrapped command changes nothing but how it is run.

    That is the wrapper's name, a time, a number, a harmless option, and a variable of ``env``, as
    in ``env CI=1``.
    """
    if posixpath.basename(word) in effects().wrappers:
        return True
    return _WRAPPER_WORD.fullmatch(word) is not None or is_harmless_assignment(word)


def _category(name: str, words: list[Word]) -> str:
    table = actions()
    texts = [word.text for word in words[1:]]
    if _PYTHON.fullmatch(name):
        return _category_of_module(texts)
    choices = table.words.get(name)
    if choices is not None:
        if name == "git":
            return _category_of_git(texts)
        first = texts[0] if texts else ""
        return choices.get(first, "unknown")
    program = words[0].text
    if "/" in program and not program.startswith(("/bin/", "/usr/bin/")):
        return "runner"  # whatever lies there
    return table.categories.get(name, "unknown")


def _category_of_module(texts: list[str]) -> str:
    """Return the category of ``python -m MODULE``, or of running a script."""
    choices = actions().words["python"]
    module = ""
    for index, text in enumerate(texts[:-1]):
        if text == "-m" and index < 4:
            module = texts[index + 1]
            break
    package = module.partition(".")[0]
    if package in choices:
        return choices[package]
    return choices.get(module, "runner")


def _category_of_git(texts: list[str]) -> str:
    if texts[:1] == ["--no-pager"]:
        texts = texts[1:]
    if _reaches_history(texts):
        return "vcs_history"
    if texts[:1] == ["worktree"] or "--edit-description" in texts:
        return "vcs_config"
    command = texts[0] if texts else ""
    return actions().words["git"].get(command, "unknown")


def _reaches_history(texts: list[str]) -> bool:
    """Whether options of git reach further than its sub-command: ``git push --force``."""
    options = [text.partition("=")[0] for text in texts[1:] if text.startswith("-")]
    if "-f" in options or texts[:2] == ["bisect", "run"]:
        return True
    for option in options:
        for reaching in effects().lists["git_reaches"]:
            # --forc is enough for --force
            shortened = len(option) > 3 and reaching.startswith(option)
            if option.startswith(reaching) or shortened:
                return True
    if texts[:1] == ["grep"] and any(map(_OPENS_PAGER.match, options)):
        return True
    # git branch -D x
    drops = effects().lists["git_drops"]
    return any(f"{texts[0]} {text}" in drops for text in texts)


def _git_places(words: list[Word], verdict: Verdict) -> None:
    verdict.accesses.append(FileAccess(".", "append"))
    if not words:
        return
    command = words[0].text
    for word in words[1:]:
        # Only git can find out whether a word is a revision or a file; both readings are judged.
        names_file = command in ("mv", "init") or "/" in word.text
        if names_file and not word.text.startswith("-"):
            verdict.accesses.append(FileAccess(word.text, "overwrite", glob=word.glob))


def _script_place(words: list[Word], verdict: Verdict) -> None:
    """Add the script that an interpreter runs, unless its code stands among the words."""
    for word in words:
        if word.text in ("-c", "-e", "-m", "-"):
            return
        if word.text[:1] != "-":
            verdict.accesses.append(FileAccess(word.text, "execute", glob=word.glob))
            return


class _RowReader:
    """Adds the places of a program that has a row in the table."""

    def __init__(self, row: Action, name: str, verdict: Verdict) -> None:
        self._row = row
        self._name = name
        self._verdict = verdict
        self._operation = row.operation
        self._whole_tree = False

    def read(self, arguments: list[Word]) -> None:
        row, verdict = self._row, self._verdict
        verdict.category = row.category
        options, operands = self._words(arguments)
        self._set_operation({option.name for option in options})
        placed = self._placed(options)
        if self._name == "sed":
            operands = self._sed_operands(options, operands)
        elif row.first == "":
            operands = operands[1:]  # the mode of chmod
        if row.last is not None and len(operands) > 1 and not placed:
            self._add_sources(operands[:-1])
            self._add_target(operands[-1], operands[:-1])
            return
        self._add_sources(operands)
        if row.into:
            folder = placed[0].path if placed else "."
            for word in operands:
                path = _below(folder, word)
                verdict.accesses.append(FileAccess(path, "overwrite", glob=word.glob))

    def _words(self, arguments: list[Word]) -> tuple[list[Option], list[Word]]:
        try:
            return read_words(self._row.spec, arguments)
        except Refused:
            self._verdict.complete = False
        options = []
        operands = []
        for word in arguments:
            if word.text.startswith("--"):
                options.append(Option(word.text[2:]))
            elif word.text.startswith("-"):
                options += [Option(letter) for letter in word.text[1:]]
            else:
                operands.append(word)
        return options, operands

    def _set_operation(self, names: set[str]) -> None:
        row = self._row
        self._whole_tree = bool(names & row.tree)
        for name in names:
            if name in row.changes:
                self._operation = row.changes[name]
                break
        if self._operation == "delete" and self._whole_tree:
            self._operation = "delete_tree"
            self._verdict.category = "tree_deleter"

    def _placed(self, options: list[Option]) -> list[FileAccess]:
        """Add the places that options name: ``cp -t folder``."""
        placed = []
        for option in options:
            operation = self._row.places.get(option.name)
            if operation is not None and option.value is not None:
                placed.append(FileAccess(option.value.text, operation))
        self._verdict.accesses.extend(placed)
        return placed

    def _add_sources(self, operands: list[Word]) -> None:
        reads_tree = self._whole_tree and self._operation == "read"
        for word in operands:
            access = FileAccess(
                word.text,
                self._operation,
                glob=word.glob,
                tree=Tree() if reads_tree else None,
            )
            self._verdict.accesses.append(access)
            if self._operation == "delete_tree" and word.glob and _ALL_FILES.match(word.text):
                # All that a directory holds is the directory.
                folder = posixpath.dirname(word.text) or "."
                self._verdict.accesses.append(FileAccess(folder, "delete_tree"))

    def _add_target(self, target: Word, sources: list[Word]) -> None:
        row, verdict = self._row, self._verdict
        operation = row.last or "overwrite"
        verdict.accesses.append(FileAccess(target.text, operation, glob=target.glob))
        if target.glob:
            verdict.complete = False
        if not row.into:
            return
        for word in sources:
            # A whole directory's content lands beside what is there, under names that the line
            # does not hold: cp -r src/. docs
            unnamed = word.glob or posixpath.basename(word.text) in ("", ".", "..")
            if self._whole_tree and unnamed:
                verdict.complete = False
            path = _below(target.text, word)
            access = FileAccess(path, operation, glob=word.glob, needs_directory=True)
            verdict.accesses.append(access)

    def _sed_operands(self, options: list[Option], operands: list[Word]) -> list[Word]:
        """Check the scripts of ``sed -i``; returns the files."""
        scripts = [
            option.value
            for option in options
            if option.name in ("e", "expression") and option.value is not None
        ]
        if not scripts:
            scripts = operands[:1]
            operands = operands[1:]
        if not scripts or any(word.glob or sed_edit(word.text) for word in scripts):
            self._verdict.complete = False
        return operands


def _below(folder: str, word: Word) -> str:
    return posixpath.join(folder, posixpath.basename(word.text.rstrip("/")) or ".")


def _find(words: list[Word], verdict: Verdict) -> None:
    """Describe a find that does more than list."""
    texts = [word.text for word in words]
    starts = []
    for text in texts[1:]:
        if text.startswith("-") or text in ("", "!", "("):
            break
        starts.append(text)
    starts = starts or ["."]
    verdict.complete = False
    verdict.accesses.extend(FileAccess(start, "list") for start in starts)
    deletes = _find_runs(words, verdict) or "-delete" in texts
    if not deletes:
        return
    verdict.category = "tree_deleter"
    names = []
    for test, value in pairwise(texts):
        if test in effects().lists["find_tests"]:
            names.append(value.lstrip("/"))
    for start in starts:
        if not names:
            verdict.accesses.append(FileAccess(start, "delete_tree"))
        for name in names:
            verdict.accesses.append(FileAccess(f"{start}/{name}", "delete"))


def _find_runs(words: list[Word], verdict: Verdict) -> bool:
    """Take the category of what find runs; returns whether it deletes."""
    deletes = False
    for index, word in enumerate(words):
        if word.text in effects().lists["find_actions"]:
            inner = Verdict()
            describe(words[index + 1 :], [], inner)
            verdict.category = inner.category
            if inner.category in ("deleter", "tree_deleter"):
                deletes = True
    return deletes
