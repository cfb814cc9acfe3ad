"""What a command does that is not proven to only read: its category, and the places that it touches.

The tables (``data/actions.toml``) know the operands of common programs. Of a program, option or
word that they do not know it is said that not all places are known.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from agenttool_otel.readers.shell import programs
from agenttool_otel.readers.shell.effects import (
    Refused,
    Touch,
    Verdict,
    is_harmless_assignment,
    is_harmless_variable,
    unwrapped,
)
from agenttool_otel.readers.shell.options import read_words
from agenttool_otel.readers.shell.reviewed.words import STANDARD_INPUT, review
from agenttool_otel.readers.shell.tables import Spec, effects, spec_of
from agenttool_otel.readers.shell.words import Word
from agenttool_otel.values.tables import load_table, row_of

_IN_PLACE = re.compile(r"-[nErsuz]*i|--in-place")
_ALL_FILES = re.compile(r"(?:.*/)?(?:\*|\.\*|\.\[!\.\]\*|\.\?\?\*)\Z")
_WRAPPER_WORD = re.compile(
    r"-(?:[nkscpevi]|[oei][0L]|[nc]?\d+)|\d+(?:\.\d+)?[smhd]?|[A-Z]{3,7}|--(?:foreground|preserve-status|verbose)"
)


@dataclass(frozen=True, slots=True)
class Action:
    """How one program's operands name places."""

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
    categories: dict[str, str]  # program -> category
    words: dict[str, dict[str, str]]  # program -> first word -> category


@cache
def actions() -> Actions:
    """Loads the table, once."""
    raw = load_table(__package__, "data/actions.toml")
    categories, words = raw.pop("categories"), raw.pop("words")
    return Actions(
        rows={name: row_of(Action, {**row, "spec": spec_of(row)}) for name, row in raw.items()},
        categories=_by_word(categories),
        words={program: _by_word(groups) for program, groups in words.items()},
    )


def _by_word(categories: dict[str, list[str]]) -> dict[str, str]:
    return {word: category for category, words in categories.items() for word in words}


def describe(words: list[Word], assignments: list[str], verdict: Verdict) -> None:
    """Adds category and places of a command that is not proven to only read."""
    texts = [word.text for word in words]
    outer = posixpath.basename(texts[0]) if texts else ""
    skipped = len(texts) - len(unwrapped(texts))
    words = words[skipped:]
    if not words:
        verdict.complete = False
        return
    name = posixpath.basename(words[0].text)
    row = actions().rows.get(name)
    if name == "find":
        _find(words, verdict)
    elif row is not None and (name != "sed" or any(map(_IN_PLACE.match, texts[skipped + 1 :]))):
        _by_row(row, name, words[1:], verdict)
    else:
        verdict.category = _category(name, words)
        verdict.complete = verdict.category == "vcs_local"
        if verdict.category == "vcs_local":
            _git_places(words[1:], verdict)
        reads = verdict.script is None and all(word.text.startswith("-") for word in words[1:])
        if name in effects().lists["shells"] and reads:
            verdict.category = "unknown"  # runs whatever reaches it
        else:
            _reviewed_words(words, verdict)
        if verdict.category == "runner":
            _script_place(words[1:], verdict)
    if skipped and outer in ("xargs", "parallel"):
        verdict.complete = False  # its input is added to the words
        verdict.unreviewed.append(STANDARD_INPUT)
    if odd := [word for word in texts[:skipped] if not _is_plain_wrapper(word)]:
        verdict.complete = False  # it opens files or goes elsewhere by itself, as strace -o does
        verdict.unreviewed += odd
    if skipped and outer in effects().lists["privileged"]:
        verdict.category = "privileged"
    elif not all(map(is_harmless_variable, assignments)):
        # LD_PRELOAD, PAGER and the like name what is run: nobody agreed to that who agreed to tests
        # and scripts.
        named = any(map(effects().program_variables.fullmatch, assignments))
        verdict.category, verdict.complete = "unknown" if named else "runner", False


def _reviewed_words(words: list[Word], verdict: Verdict) -> None:
    """Adds the words of a program that no table accounts for, and the places and effects of those
    that one does.
    """
    known_later = [
        word.text for word in words[1:] if word.unknown or word.substitution or word.glob_first
    ]
    read = review([word.text for word in words])
    verdict.unreviewed = list(dict.fromkeys([*read.unreviewed, *known_later]))
    verdict.network |= read.sends
    globs = {word.text for word in words if word.glob}
    verdict.touches.extend(
        Touch(place, operation, glob=place in globs) for place, operation in read.places
    )
    if any(operation == "delete_tree" for _, operation in read.places):
        verdict.category, verdict.destructive = "tree_deleter", True


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
    family = "python" if re.fullmatch(r"python[0-9.]*|pypy3?", name) else name
    if (choices := table.words.get(family)) is not None:
        texts = [word.text for word in words[1:]]
        if family == "python":
            module = next(
                (texts[i + 1] for i, text in enumerate(texts[:-1]) if text == "-m" and i < 4), ""
            )
            return choices.get(module.partition(".")[0], choices.get(module, "runner"))
        if family == "git" and texts[:1] == ["--no-pager"]:
            texts = texts[1:]
        word = texts[0] if texts else ""
        return (
            _history(texts) or choices.get(word, "unknown")
            if family == "git"
            else choices.get(word, "unknown")
        )
    if "/" in words[0].text and not words[0].text.startswith(("/bin/", "/usr/bin/")):
        return "runner"  # whatever lies there
    return table.categories.get(name, "unknown")


def _history(texts: list[str]) -> str:
    """The category of a git command whose options reach further than its sub-command."""
    options = [text.partition("=")[0] for text in texts[1:] if text.startswith("-")]
    reaching = effects().lists["git_reaches"]
    reaches = any(
        o.startswith(reach) or (len(o) > 3 and reach.startswith(o))
        for o in options
        for reach in reaching
    )
    opens = texts[:1] == ["grep"] and any(re.match("-[A-Za-z0-9]*O", option) for option in options)
    drops = any(f"{texts[0]} {text}" in effects().lists["git_drops"] for text in texts)
    if "-f" in options or reaches or opens or drops or texts[:2] == ["bisect", "run"]:
        return "vcs_history"
    return "vcs_config" if texts[:1] == ["worktree"] or "--edit-description" in texts else ""


def _git_places(words: list[Word], verdict: Verdict) -> None:
    verdict.touches.append(Touch(".", "append"))
    texts = [word.text for word in words]
    for index, word in enumerate(words):
        # What a word of git is, a revision or a file, only git knows; both readings are judged.
        if (
            index
            and not word.text.startswith("-")
            and (texts[0] in ("mv", "init") or "/" in word.text)
        ):
            verdict.touches.append(Touch(word.text, "overwrite", glob=word.glob))


def _script_place(words: list[Word], verdict: Verdict) -> None:
    first = next((w for w in words if w.text in ("-c", "-e", "-m", "-") or w.text[:1] != "-"), None)
    if first is not None and not first.substitution and first.text[:1] != "-":
        verdict.touches.append(Touch(first.text, "execute", glob=first.glob))


def _by_row(row: Action, name: str, arguments: list[Word], verdict: Verdict) -> None:
    verdict.category = row.category
    try:
        options, operands = read_words(row.spec, arguments)
    except Refused:
        verdict.complete = False
        dashed = [word.text for word in arguments if word.text.startswith("-")]
        options = [
            (name, None)
            for text in dashed
            for name in ([text[2:]] if text.startswith("--") else text[1:])
        ]
        operands = [word for word in arguments if not word.text.startswith("-")]
    names = {option for option, _ in options}
    tree = bool(names & row.tree)
    operation = next(
        (row.changes[option] for option in names if option in row.changes), row.operation
    )
    if operation == "delete" and tree:
        operation = "delete_tree"
        verdict.category = "tree_deleter"
    placed = [
        Touch(value.text, row.places[option])
        for option, value in options
        if option in row.places and value is not None
    ]
    verdict.touches.extend(placed)
    verdict.complete &= not (any(word.substitution for word in operands))
    if name == "sed":
        operands = _sed_operands(options, operands, verdict)
    elif row.first == "":
        operands = operands[1:]
    target = operands[-1] if row.last is not None and len(operands) > 1 and not placed else None
    for word in operands[:-1] if target is not None else operands:
        _touch_operand(word, operation, tree, verdict)
    if target is not None:
        _touch_target(row, target, operands[:-1], tree, verdict)
    elif row.into:
        folder = placed[0].word if placed else "."
        verdict.touches.extend(
            Touch(_below(folder, word), "overwrite", glob=word.glob) for word in operands
        )


def _touch_operand(word: Word, operation: str, tree: bool, verdict: Verdict) -> None:
    verdict.touches.append(
        Touch(word.text, operation, glob=word.glob, recursive=tree and operation == "read")
    )
    if operation == "delete_tree" and word.glob and _ALL_FILES.match(word.text):
        # All that a directory holds is the directory.
        verdict.touches.append(Touch(posixpath.dirname(word.text) or ".", operation))


def _touch_target(
    row: Action, target: Word, sources: list[Word], tree: bool, verdict: Verdict
) -> None:
    verdict.touches.append(Touch(target.text, row.last or "overwrite", glob=target.glob))
    verdict.complete = verdict.complete and not target.glob
    if not row.into:
        return
    for word in sources:
        # A whole directory's content lands beside what is there, under names that the line does not
        # tell.
        verdict.complete &= not (
            tree and (word.glob or posixpath.basename(word.text) in ("", ".", ".."))
        )
        verdict.touches.append(
            Touch(_below(target.text, word), row.last or "overwrite", glob=word.glob, below=True)
        )


def _below(folder: str, word: Word) -> str:
    return posixpath.join(folder, posixpath.basename(word.text.rstrip("/")) or ".")


def _sed_operands(
    options: list[tuple[str, Word | None]], operands: list[Word], verdict: Verdict
) -> list[Word]:
    scripts = [
        value for option, value in options if option in ("e", "expression") and value is not None
    ]
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not scripts or any(
        word.glob or word.substitution or programs.sed_edit(word.text) for word in scripts
    ):
        verdict.complete = False
    return operands


def _find(words: list[Word], verdict: Verdict) -> None:
    texts = [word.text for word in words]
    end = next(
        (i for i, text in enumerate(texts[1:], start=1) if text.startswith("-") or text in "!("),
        len(texts),
    )
    starts = texts[1:end] or ["."]
    names = [
        texts[i + 1] for i, text in enumerate(texts[:-1]) if text in effects().lists["find_tests"]
    ]
    verdict.complete = False
    verdict.touches.extend(Touch(start, "list") for start in starts)
    deletes = "-delete" in texts
    for index, text in enumerate(texts):
        if text in effects().lists["find_actions"]:
            inner = Verdict()
            describe(words[index + 1 :], [], inner)
            verdict.category = inner.category
            deletes = deletes or inner.category in ("deleter", "tree_deleter")
    if not deletes:
        return
    verdict.category = "tree_deleter"
    if not names:
        verdict.touches.extend(Touch(start, "delete_tree") for start in starts)
    for start in starts:
        verdict.touches.extend(Touch(f"{start}/{name.lstrip('/')}", "delete") for name in names)
