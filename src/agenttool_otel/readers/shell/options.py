"""The words of a command, read as its table says: options, and operands that name files. The
unknown ends the proof.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agenttool_otel.readers.shell.devices import climbs, device_reason, joined
from agenttool_otel.readers.shell.effects import Refused, Touch, Verdict, refuse_if
from agenttool_otel.readers.shell.secrets import is_listed, names_secret, wide_root
from agenttool_otel.readers.shell.tables import Spec
from agenttool_otel.readers.shell.words import Word

SIGNED: Final = ("format", "pretty", "sort")
"""Options of git by whose value it may check signatures, which runs a program."""
_DIGITS = re.compile(r"[0-9]+")
_LEGACY_NUMBER = re.compile(r"-[0-9]+\Z")
_NO_OPTION = re.compile(r"-(?:[^A-Za-z0-9-]|\Z)")  # of any program, as in -e '->x'
_TYPED = re.compile(r"\*\.\w+\Z")
AMOUNT = re.compile(r"[+-]?[0-9]+[A-Za-z]{0,3}\Z")


def read_words(
    spec: Spec, arguments: list[Word]
) -> tuple[list[tuple[str, Word | None]], list[Word]]:
    """Reads a command's words as its table says: options with their values, those of no name may be
    files; operands.
    """
    options: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    index, ended = 0, False
    while index < len(arguments):
        word = arguments[index]
        index += 1
        text = word.text
        # or looked for on the disk
        known = ended or spec.glob_first or (spec.takes_files and _TYPED.search(text))
        refuse_if(word.glob_first and not known, "unquoted glob that may become an option")
        if ended or not text.startswith("-") or text == "-":
            if (
                operands
                and text.startswith("-")
                and (spec.max_operands is not None or not spec.permute)
            ):
                raise Refused("option behind an operand")
            operands.append(word)
            ended = ended or not spec.permute
            continue
        # Where options end at the first operand, it names a file.
        refuse_if(
            spec.max_operands is not None and len(operands) >= spec.max_operands,
            "option behind the last operand",
        )
        refuse_if(word.glob and not _globs_value(spec, text), "glob in an option")
        if text == "--":
            ended = True
            continue
        following = arguments[index] if index < len(arguments) else None
        letters: set[str] = set()
        if text.startswith("--"):
            option, value, used = _long_option(spec, text, following)
        elif spec.number and _LEGACY_NUMBER.match(text):
            continue
        else:
            option, value, used = _short_option(spec, text, following, letters)
        # With POSIXLY_CORRECT, and in BSD, options end here and the first operand is the program.
        refuse_if(
            operands and spec.program and option in spec.pattern_options,
            "program behind an operand",
        )
        index += used
        refuse_if(index > len(arguments), f"option --{option} without its values")
        options += [*((letter, None) for letter in letters), (option, value)]
        if (
            operands
            and used
            and value is not None
            and spec.operands != "revisions"
            and spec.permute != "always"
        ):
            options.append(("", value))  # some programs take what follows an operand for a file
    return options, operands


def _globs_value(spec: Spec, text: str) -> bool:
    """Whether a glob stands only in a long option's value, as in ``--include=*.py``: each match is
    that option too.
    """
    option, equals, _value = text.partition("=")
    bound = {*spec.pattern_options, *spec.path_options, *SIGNED}
    return (
        bool(equals and not spec.sensitive_value)
        and option[:2] == "--"
        and option[2:] in spec.long_value.keys() - bound
    )


def _long_option(spec: Spec, text: str, following: Word | None) -> tuple[str, Word | None, int]:
    """Reads a word that begins with ``--``: the option, its value, and how many further
    words it took.
    """
    option, equals, value = text[2:].partition("=")
    if option in spec.long and not equals:
        return option, None, 0
    if option in spec.long_pair and not equals:
        return option, None, 2
    if (attached_only := spec.long_value.get(option)) is None:
        unsafe = next(
            (name for name in spec.unsafe_long if option and name.startswith(option)), None
        )
        raise Refused(f"option --{unsafe}" if unsafe else f"unknown option --{option[:40]}")
    if equals:
        return option, Word(value, 0, 0, quoted=True), 0
    if attached_only:
        return option, None, 0
    return option, _separate_value(following, f"--{option}"), 1


def _separate_value(following: Word | None, option: str) -> Word:
    if following is None:
        raise Refused(f"option {option} without its value")
    refuse_if(following.glob, "glob as an option's value")
    if following.text.startswith("-") and not (
        _NO_OPTION.match(following.text) or AMOUNT.match(following.text)
    ):
        raise Refused("option's value that looks like an option")
    return following


def _short_option(
    spec: Spec, text: str, following: Word | None, options: set[str]
) -> tuple[str, Word | None, int]:
    """Reads a word that begins with one dash: the last letter, its value, and how many further
    words it took.
    """
    refuse_if(
        not spec.cluster and len(text) > 2 and text[1] not in spec.value,
        "several letters in one option",
    )
    for position, letter in enumerate(text[1:], start=1):
        if letter in spec.short:
            options.add(letter)
            continue
        if letter in spec.value:
            rest = text[position + 1 :]
            if rest and spec.value_apart and not _DIGITS.fullmatch(rest):
                raise Refused(f"letters behind -{letter}, which takes the next word")
            if rest:
                return letter, Word(rest, 0, 0, quoted=True), 0
            return letter, _separate_value(following, f"-{letter}"), 1
        if letter in spec.optional:
            return letter, Word(text[position + 1 :], 0, 0, quoted=True), 0
        raise Refused(f"unknown option -{letter}")
    return text[-1], None, 0


def check_file(
    word: Word, verdict: Verdict, *, recursive: bool = False, contents: bool = True, **how: Any
) -> None:
    """Accounts for a word that names a file to read, or only to list."""
    if word.substitution or word.text == "-":
        return
    refuse_if(word.unknown, "file that is only known when the line runs")
    reads, operation = recursive and contents, "read" if contents else "list"
    deep = reads or (recursive and how.get("follow", False))
    verdict.touches.append(Touch(word.text, operation, word.glob, deep, split=word.split, **how))
    for path in dict.fromkeys(joined(directory, word.text) for directory in verdict.directories):
        if reason := device_reason(path, deep=reads):
            verdict.network = (
                verdict.network
                or reason == "network file"
                or "/dev/tcp" in path
                or "/dev/udp" in path
            )
            raise Refused(reason)
        # what is there, below an unnamed directory, is judged as a place
        if not contents and (
            is_listed(path) or not (path[:1] in ("/", "~") or any(map(climbs, path.split("/"))))
        ):
            continue
        verdict.sensitive |= names_secret(path, glob=word.glob and contents) or (
            reads and wide_root(path)
        )
