"""The command tables that ship with the package, loaded once, on first use, and what they say that
commands print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from agenttool_otel.values.tables import load_table, row_of

if TYPE_CHECKING:
    from agenttool_otel.readers.shell.compounds import Simple
    from agenttool_otel.readers.shell.words import Word

_PLAIN = re.compile(r"[\w./:^~%+=@*(),;!-]+", re.ASCII)
_IN_FORMATS = str.maketrans(" |_!", "_!\n\n")
# What lets only some lines through, as they are.
_SIFTS = re.compile(
    r"(?:\|(?:(?:head|tail)(?: -n? ?\+?[0-9]+)?|sort(?: -[nrVu]+)*|uniq|e?grep(?: -[vEFiwx]+)* [^-\s|]\S*))+\Z"
)
_CHOOSES = re.compile("--(?:grep|author|since|until|after|before)=")
_LISTS_FOLDER = re.compile(r"ls(?: -[1trS]+)*(?: (?!-)([\w./-]*[\w.-])/*)?")
TEXT, NUMBER, HASH = "\0", "\1", "\4"
"""Stand in a word for a text, number or name of a commit that is only known when the line runs; no
line holds them.
"""


@dataclass(frozen=True, slots=True)
class Spec:
    """How one command's words may look for the command to only read (data/read_only.toml explains
    the keys).
    """

    short: frozenset[str] = frozenset()
    value: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    # name -> its value can only be attached
    long_value: dict[str, bool] = field(default_factory=dict)
    unsafe_long: tuple[str, ...] = ()
    operands: str = "none"
    pattern_options: frozenset[str] = frozenset()
    path_options: frozenset[str] = frozenset()
    operand_pattern: re.Pattern[str] | None = None
    narrows: re.Pattern[str] | None = None
    max_operands: int | None = None
    number: bool = False
    glob_first: bool = False
    permute: bool | str = True
    cluster: bool = True
    value_apart: bool = False
    splits: bool = False
    recursive: frozenset[str] = frozenset()
    name_options: frozenset[str] = frozenset()
    suffix_options: frozenset[str] = frozenset()
    response_files: bool = False
    describes: bool = False
    opens: bool = False
    long_pair: frozenset[str] = frozenset()
    pattern_optional: bool = False
    sensitive_value: re.Pattern[str] | None = None
    sensitive: bool = False
    builtin: bool = False
    program: str = ""
    lists_current: bool = False
    skips_hidden: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()

    @property
    def takes_files(self) -> bool:
        """Whether it takes any number of files in the same way; no name of a file is taken for an
        option then.
        """
        return self.glob_first or (
            self.max_operands is None and self.operands in ("paths", "pattern")
        )


class Wrapper(NamedTuple):
    """How to find the command that another command runs."""

    value: frozenset[str] = frozenset()
    skip: int = 0
    assignments: bool = False


class Effects(NamedTuple):
    """What commands do that are not proven to only read (data/effects.toml)."""

    lists: dict[str, frozenset[str]]
    destructive_words: dict[str, tuple[str, ...]]
    wrappers: dict[str, Wrapper]
    program_variables: re.Pattern[str]
    network_words: dict[str, re.Pattern[str]]
    sensitive_words: dict[str, re.Pattern[str]]


class Sensitive(NamedTuple):
    """Which names hold credentials (data/sensitive.toml)."""

    path: re.Pattern[str]
    wide_roots: tuple[str, ...]
    ordinary: frozenset[str]
    samples: tuple[tuple[bool, tuple[str, ...]], ...]  # whether from the root, and the components
    searched: re.Pattern[str]
    fields: re.Pattern[str]
    listed: re.Pattern[str]


@cache
def read_only() -> dict[str, Spec]:
    """The commands that can be proven to only read, by name."""
    raw = load_table(__package__, "data/read_only.toml")
    rows = {name: row for names, row in raw.items() for name in names.split("|")}
    return {
        name: spec_of(rows[row["same_as"]] if "same_as" in row else row)
        for name, row in rows.items()
    }


@cache
def with_commands() -> frozenset[str]:
    """The programs whose commands the table tells apart."""
    return frozenset(name.partition(" ")[0] for name in read_only() if " " in name)


def spec_of(row: dict[str, Any]) -> Spec:
    """The options and operands of one row."""
    attached = {name.rstrip("?"): name.endswith("?") for name in row.get("long_value", ())}
    return row_of(Spec, {**row, "long_value": attached})


@cache
def programs() -> dict[str, dict[str, frozenset[str]]]:
    """The words of the small languages (data/programs.toml), by language and group."""
    return {
        language: {group: frozenset(words) for group, words in groups.items()}
        for language, groups in load_table(__package__, "data/programs.toml").items()
    }


@cache
def effects() -> Effects:
    """What the other commands are known to do."""
    raw = load_table(__package__, "data/effects.toml")
    wrappers = {name: row_of(Wrapper, row) for name, row in raw["wrapper"].items()}
    known = [*raw["network"], *raw["executes"], *raw["plain"], *read_only()]
    lists = {
        name: words
        for name, words in {**raw, **raw["lists"], "known": known}.items()
        if isinstance(words, list)
    }
    return row_of(Effects, {**raw, **raw["lists"], "lists": lists, "wrappers": wrappers})


@cache
def sensitive() -> Sensitive:
    """Which names hold credentials."""
    raw = load_table(__package__, "data/sensitive.toml")
    either = {
        key: "(?i)" + "|".join(f"(?:{pattern})" for pattern in raw[key])
        for key in ("searched", "fields")
    }
    either["path"] = "(?i)" + "|".join(f"(?:{pattern})" for pattern in raw["patterns"])
    either["listed"] = "|".join(raw["listed"])
    samples = tuple(
        (sample[0] == "/", tuple(sample.strip("/").split("/"))) for sample in raw["samples"]
    )
    return row_of(Sensitive, {**raw, **either, "samples": samples})


def prints(pipeline: Sequence[Simple] | None, *kinds: str) -> bool:
    """Whether all that a pipeline prints is of these kinds (``data/programs.toml``); it may print
    nothing.
    """
    text = "|".join(map(_shown, pipeline or ()))
    forms = [
        rf"(?s:.*\|)?(?:{form})" for kind in kinds for form in programs()["prints"].get(kind, ())
    ]
    return any(
        re.fullmatch(form, shown) for shown in {text, _SIFTS.sub("", text)} for form in forms
    )


def lists_folder(pipeline: Sequence[Simple] | None) -> str | None:
    """The folder, with its slash, whose names a pipeline prints, each in its line; an empty one is
    where it runs.
    """
    match = _LISTS_FOLDER.fullmatch(_SIFTS.sub("", "|".join(map(_shown, pipeline or ()))))
    return match and (f"{match[1]}/" if match[1] else "")


def _shown(command: Simple) -> str:
    """A command as the table writes it: ``'`` for other words that are known, a line break for what
    is not.
    """
    goes = [
        r
        for r in command.redirects
        if r.operator != "<" and (r.fd, r.target.text) != ("2", "/dev/null")
    ]
    fed = any("<" in redirect.operator for redirect in command.redirects)
    return (
        " ".join(map(_word, command.words)) + " <" * fed + "\n" * bool(goes or command.assignments)
    )


def _word(word: Word) -> str:
    text = word.text.replace(HASH, "0")
    text = text.translate(_IN_FORMATS) if text.startswith(("--format=", "--pretty=")) else text
    text = f"{text.partition('=')[0]}=0" if _CHOOSES.match(text) and not word.unknown else text
    plain = not word.glob and _PLAIN.fullmatch(text)
    listed = (
        word.text == TEXT
        and word.source is not None
        and not word.split
        and not of_index(word.source)
    )
    odd = (
        (word.unknown and not listed)
        or word.substitution
        or (word.glob and (word.glob_first or not word.one))
    )
    return text if plain else "\n" if odd or word.text[:1] == "-" else "'"


def of_index(pipeline: Sequence[Simple]) -> bool:
    """Whether git lists names for a pipeline: they need not be on the disk, and may be options when
    taken apart.
    """
    return any(word.text == "git" for command in pipeline for word in command.words[:1])


def ends_names_with_nul(pipeline: Sequence[Simple]) -> bool:
    """Whether a pipeline is one command that ends each name that it prints with a NUL."""
    words = [word.text for word in pipeline[0].words] if len(pipeline) == 1 else [""]
    option = {"find": "-print0", "git": "-z", "rg": "-[a-zA-Z]*0|--null"}.get(
        words[0], "-[a-zA-Z]*Z[a-zA-Z]*|--null"
    )
    return any(re.fullmatch(option, word) for word in words[1:])
