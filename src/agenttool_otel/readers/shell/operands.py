"""The words of a command that the tables describe: options, files, patterns, programs; the unknown
ends the proof.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile
from typing import Final

from agenttool_otel.readers.shell import programs, tables
from agenttool_otel.readers.shell.effects import Refused, Touch, Verdict, refuse_if
from agenttool_otel.readers.shell.options import SIGNED, check_file, read_words
from agenttool_otel.readers.shell.secrets import (
    BRACE,
    aims_at_secret,
    asks_for_secret,
    names_secret,
    searches_secret,
)
from agenttool_otel.readers.shell.tables import HASH, NUMBER, TEXT, Spec
from agenttool_otel.readers.shell.words import Word, alternatives

_LETTERS: Final = str.maketrans({TEXT: "x", HASH: "x", NUMBER: "1"})
_MAY_BE_AT: Final = frozenset({"@", "*", "?", "[", "{", TEXT, HASH})
_MAX_DIGITS: Final = 8
_SMALL_N: Final = re.compile(r"n=[0-9]{1,4}")
# loops may count up to n
_VALUE: Final = re.compile(rf"(?!n=)[a-z]\w*=[{TEXT}{NUMBER}{HASH}\w/.*?\[\]-]*", re.ASCII)
_Words = list[Word]


def prove_words(spec: Spec, arguments: list[Word], verdict: Verdict) -> None:
    """Accounts for every word behind a command's name."""
    files: list[Word] = []
    patterns: list[Word] = []
    names: list[str] = []
    refuse_if(
        spec.response_files and any(w.text[:1] in _MAY_BE_AT for w in arguments),
        "file of further words",
    )
    found, operands = read_words(spec, arguments)
    options = {option for option, _ in found}
    verdict.exposed |= not spec.glob_first and any(word.glob_first for word in arguments)
    for option, value in found:
        if value is None:
            continue
        wide = (
            spec.operands != "revisions"
            and value.text.lstrip("+-").isdigit()
            and len(value.text) > _MAX_DIGITS
        )
        refuse_if(
            wide or (option == "diff-merges" and value.text[:1] == "r"),
            "width, or merges made again",
        )
        refuse_if(
            HASH in value.text and option in {*SIGNED, *spec.path_options},
            "commit as a format or file",
        )
        options.update(
            row for row in spec.recursive if f"{option}={value.text}".startswith(row) and "=" in row
        )
        # that only leaves out
        if option in spec.name_options and not (spec.skips_hidden and value.text[:1] == "!"):
            names += alternatives(value.text, BRACE) if option != "iglob" else ["**"]
        if spec.skips_hidden and (option in spec.name_options or option in ("t", "type")):
            # what is asked for by its name is looked at where it is hidden, too
            code = option in ("t", "type") and value.text in tables.programs()["rg"]["code"]
            options.update(["hidden"] * (not code and value.text[:1] != "!"))
            names += [f"*.{value.text}"] * code
        verdict.sensitive |= _asks_for_secret(spec, option, value.text)
        verdict.sensitive |= (
            spec.operands == "revisions" and option in ("S", "G") and searches_secret(value.text)
        )
        if spec.operands == "revisions" and option in spec.path_options and option != "L":
            check_file(value, verdict)
        elif option in spec.path_options or not option:
            files.append(value)
        elif option in spec.pattern_options:
            patterns.append(value)
        elif spec.program == "awk":
            refuse_if(
                value.text.startswith("n=") and not _SMALL_N.fullmatch(value.text),
                "awk loop without a bound",
            )
            refuse_if(programs.CHECKS["awk"](value.text.replace("|", "")))
    if spec.operands == "revisions":
        searches = "--" not in [word.text for word in arguments] and any(
            w.text[:2] == ":/" for w in operands
        )
        refuse_if(searches, "commit that is looked for by its message")
        # what git takes lines of stands behind the last colon: /def main/,+9:src/a.py
        _check_revisions(
            [*operands, *(replace(w, text=w.text.rpartition(":")[2]) for w in files)], verdict
        )
        files.clear()
    else:
        _roles(spec, operands, files, patterns, options, verdict)
    files = [
        w for w in files if w.glob or spec.narrows is None or not spec.narrows.fullmatch(w.text)
    ]
    _check_files(spec, files, options, names, verdict)


def free_words(name: str, spec: Spec, words: list[Word]) -> list[Word]:
    """Gives a letter for each text that is only known when the line runs, where it can be nothing
    but any text.

    That is the value in ``--option=value`` in front of all operands, and what is searched for, and
    operands that are no files, where they can't be an option.
    """
    options, operands = read_words(spec, words)
    deep = {row.partition("=")[0] for row in spec.recursive}
    bound = {
        *spec.path_options,
        *spec.name_options,
        *spec.suffix_options,
        *spec.pattern_options,
        *SIGNED,
        *deep,
    }
    lead = sum(
        1
        for _ in takewhile(
            lambda w: w.text[:1] == "-" and w.text not in ("-", "--") and not w.glob, words
        )
    )
    given = {option for option, _ in options}
    sought = operands if spec.operands == "text" and spec.operand_pattern is None else []
    if (
        spec.operands == "pattern"
        and not given & {*deep, *spec.pattern_options}
        and name != "git grep"
    ):
        sought = [] if "always" in deep else operands[:1]
    behind = [word.text for word in words[-2:-1]] == ["--"]
    if behind and name in ("git log", "git diff", "git show", "git rev-list"):
        sought = operands[-1:]  # it only leaves out files
    found = []
    for index, word in enumerate(words):
        option, equals, _ = word.text[2:].partition("=")
        valued = (
            index < lead
            and word.text[:2] == "--"
            and equals
            and option in spec.long_value.keys() - bound
        )
        ended = words[index - 1].text == "--" and index in (lead + 1, len(words) - 1)
        begins = word.text[:1] not in (TEXT, HASH, NUMBER) or ended
        free = (
            word.quoted
            and not word.split
            and (valued or (begins and any(word is one for one in sought)))
        )
        found.append(replace(word, text=word.text.translate(_LETTERS)) if free else word)
    return found


def free_values(words: list[Word]) -> list[Word]:
    """Gives a letter for each text that is only known when the line runs and that awk gets as a
    variable's value.
    """
    return [
        replace(word, text=word.text.translate(_LETTERS), glob=word.glob and not word.one)
        if before.text == "-v"
        and not word.split
        and (word.quoted or HASH not in word.text)
        and _VALUE.fullmatch(word.text)
        else word
        for before, word in zip([*words[:1], *words], words, strict=False)
    ]


def _check_revisions(operands: list[Word], verdict: Verdict) -> None:
    """Accounts for words that git takes for a revision, a file, or a file of a revision."""
    for word in operands:
        text = word.text
        verdict.sensitive |= names_secret(text.rpartition(":")[2])
        refuse_if(HASH in text.partition(":")[2], "file named as a commit is")
        outside = text.startswith(("/", "~", "..")) or "/.." in text
        if (
            outside
            or word.glob
            or ("/" in text and not any(sign in text for sign in ("~", "^", ":", "@", "..")))
        ):
            check_file(word, verdict)


def _asks_for_secret(spec: Spec, option: str, value: str) -> bool:
    """Whether an option's value chooses files or fields that hold credentials or the
    environment.
    """
    return (
        (option in spec.name_options and aims_at_secret(value))
        or (option in spec.suffix_options and names_secret(f"x.{value}"))
        or (spec.sensitive_value is not None and spec.sensitive_value.search(value) is not None)
    )


def _check_files(
    spec: Spec, files: list[Word], options: set[str], names: list[str], verdict: Verdict
) -> None:
    """Accounts for the files that a command reads, and for the current directory where it takes
    that by itself.
    """
    recursive = "always" in spec.recursive or bool(options & spec.recursive)
    enters, follows = spec.program == "cd", bool(options & spec.follows)
    # where the line came from, nobody knows
    verdict.complete &= not (enters and any(word.text == "-" for word in files))
    if not files and (recursive or spec.lists_current):
        files = [Word(".", 0, 0)]
    for word in files:
        check_file(
            replace(word, split=True) if spec.splits else word,
            verdict,
            recursive=recursive,
            contents=not spec.describes and not enters,
            # GNU grep reads what matches neither where --exclude comes first
            names=()
            if "exclude" in options or (spec.skips_hidden and follows)
            else programs.narrowing(names),
            hidden=not spec.skips_hidden or bool(options & spec.skips_hidden) or follows,
            follow=follows,
        )
    verdict.sensitive |= spec.opens and any(
        names_secret(word.text, glob=word.glob) for word in files
    )
    if enters:
        verdict.touches = [touch._replace(operation="enter") for touch in verdict.touches]
        if not files:
            verdict.touches.append(Touch("~/", "enter"))


def _roles(
    spec: Spec,
    operands: _Words,
    files: _Words,
    patterns: _Words,
    options: set[str],
    verdict: Verdict,
) -> None:
    """Says which operands are files, and checks patterns and programs."""
    if spec.operand_pattern is not None and not all(
        spec.operand_pattern.fullmatch(w.text) for w in operands
    ):
        raise Refused("operand")
    most, many = spec.max_operands, any(word.glob and not word.one for word in operands)
    refuse_if(most is not None and (len(operands) > most or (most == 1 and many)), "more operands")
    refuse_if(spec.operands == "none" and operands, "an operand")
    if spec.operands == "text":
        verdict.sensitive |= any(names_secret(word.text) for word in operands)
        list_globs(operands, verdict)
    elif spec.operands == "paths":
        files.extend(operands)
    elif spec.operands == "pattern":
        if not options & spec.pattern_options:
            refuse_if(not (operands or spec.pattern_optional), "no program or pattern")
            if not operands:
                return
            patterns.append(operands[0])
            if operands[0].glob:
                refuse_if(spec.program, "glob as a program")
                verdict.touches.append(Touch(operands[0].text, "list", glob=True))
            operands = operands[1:]
        files.extend(operands)
        _check_patterns(spec, patterns, verdict)
        if spec.program == "awk" and any("=" in word.text for word in files):
            raise Refused("assignment among the operands of awk")


def list_globs(words: list[Word], verdict: Verdict) -> None:
    listed = [
        word for word in words if ((word.glob and not word.one) or word.split) and not word.unknown
    ]
    verdict.touches.extend(
        Touch(word.text, "list", glob=word.glob, split=word.split) for word in listed
    )


def _check_patterns(spec: Spec, patterns: list[Word], verdict: Verdict) -> None:
    for word in patterns:
        text = word.text
        refuse_if(word.substitution or word.split, "program from a substitution")
        reason = ""
        if spec.program in programs.CHECKS:
            check = programs.CHECKS[spec.program]
            vanishes = word.empty and (spec.program != "sed" or programs.SED_ACTING & set(text))
            reason = check(text.replace(NUMBER, "1")) or (
                check(text.replace(NUMBER, "")) if vanishes else ""
            )
        elif spec.suffix_options and aims_at_secret(text):
            verdict.sensitive = True
        verdict.sensitive |= searches_secret(text) or (
            spec.program == "jq" and asks_for_secret(text)
        )
        refuse_if(reason)
