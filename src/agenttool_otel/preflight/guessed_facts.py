"""A skeleton of facts for tools that nobody declared: guesses from names, schema and description.

What could make a policy lenient is written as a comment, so that a skeleton pasted unread loosens
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.facts.intent import is_noun, stem_of, verbs_in
from agenttool_otel.values.tables import load_table

_LISTED: Final[dict[str, str]] = load_table(__package__, "guessed_words.toml")
_WORDS: Final = {effect: frozenset(map(stem_of, text.split())) for effect, text in _LISTED.items()}
_WRITING: Final = ("destroys", "pays", "sends", "writes")
_VERBS: Final = frozenset().union(*(_WORDS[effect] for effect in (*_WRITING, "reads", "runs")))
_CONNECTIVES: Final = frozenset({"and", "or", "then", "to"})
_PASSIVE: Final = "ed"
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE: Final = re.compile(r"(.*?)(?:[.!?](?=\s|$)|\n\s*\n|$)", re.S)
_ABBREVIATED: Final = re.compile(r"\b(e\.g|i\.e|etc|vs|incl)\.", re.I)
_MAX_TEXT: Final = 80


class Guess(NamedTuple):
    """One fact that a tool may have."""

    keyword: str
    value: Any
    why: str
    loosens: bool  # whether a policy may ask or deny less where it is stated


def undeclared(spec: ToolSpec) -> bool:
    """Tell whether nobody said if a tool only reads."""
    return "read_only" in spec.interface.inferred


class _Told:
    """What a tool's name and the first sentence of its description say that it does."""

    def __init__(self, name: str, description: str) -> None:
        words = re.findall(r"[a-z]+", _HUMPS.sub(" ", name).lower())
        self._name = dict(_verbs_of_name(words))
        sentence = _SENTENCE.match(_ABBREVIATED.sub(r"\1", description.strip()))
        text = sentence[1] if sentence else ""
        self._sentence = dict(verbs_in(text))
        self._about = {stem_of(word) for word in (*words, *re.findall(r"[a-z]+", text.lower()))}

    def says(self, effect: str) -> str:
        """Return what says that it has an effect, or an empty text."""
        known = _WORDS[effect]
        if found := next((word for stem, word in self._name.items() if stem in known), ""):
            return f"the name says {found}"
        if effect == "runs" and not self.is_about("code"):
            return ""
        found = next((word for stem, word in self._sentence.items() if stem in known), "")
        return f"the description says {found}" if found else ""

    def pays(self) -> str:
        """Return what says that it moves money, or an empty text: "refund", "send money", "place an
        order".
        """
        if found := self.says("pays"):
            return found
        if ordered := self.says("orders"):
            return ordered if "order" in self._about or self.is_about("money") else ""
        if not self.is_about("money"):
            return ""
        changes = self.says("sends") or self.says("writes")
        return changes or ("" if self.says("reads") else "it is about money")

    def is_about(self, what: str) -> bool:
        """Return whether some word of a list stands anywhere in the name or the sentence."""
        return not _WORDS[what].isdisjoint(self._about)


def _verbs_of_name(words: list[str]) -> Iterator[tuple[str, str]]:
    """Return the verbs of a tool's name, by stem.

    A word that is a noun as often (``email``, ``order``) is one where nothing else is
    (``email_person``, but not ``search_emails`` or ``order_status``), or behind a connective
    (``find_and_update``).
    """
    for at, word in enumerate(words):
        stem = stem_of(word)
        if stem not in _VERBS or (word.endswith(_PASSIVE) and at):
            continue
        others = {stem_of(other) for other in words[at + 1 :]} & _VERBS
        first = at == 0 and not any(
            not is_noun(other) or other in _WORDS["reads"] for other in others
        )
        if not is_noun(stem) or first or words[at - 1] in _CONNECTIVES or stem in _WORDS["reads"]:
            yield stem, word


def guesses(spec: ToolSpec) -> Iterator[Guess]:
    """Guess the facts of one tool, the ones that restrict first.

    Args:
        spec: the tool.
    """
    arguments = [
        (pointer.removeprefix("/").removesuffix("/*"), kind)
        for pointer, kind, _ in _arguments(spec)
    ]
    kinds = {kind for _, kind in arguments}
    told = _Told(spec.name, spec.declaration.description or "")
    runs = told.says("runs") or ("it takes a command" if "command" in kinds else "")
    sends, destroys, reads = told.says("sends"), told.says("destroys"), told.says("reads")
    writes = told.says("writes") or sends or destroys
    pays = told.pays()
    changes = destroys or pays or writes or runs
    if "command" in kinds or "sql" in kinds:
        yield Guess(
            "read_only",
            "classifier:command_read_only",
            "its text is a command or SQL",
            loosens=True,
        )
        yield Guess(
            "destructive",
            "classifier:command_destructive",
            "its text is a command or SQL",
            loosens=True,
        )
    elif changes or not reads:
        yield Guess("read_only", False, changes or "nothing says that it only reads", loosens=True)
    else:
        yield Guess(
            "read_only", True, f"{reads}, and nothing that it changes something", loosens=True
        )
    if destroys and not kinds & {"command", "sql"}:
        yield Guess("destructive", True, destroys, loosens=False)
    yield _access(kinds, runs=runs, pays=pays, sends=sends, only_reads=bool(reads and not changes))
    if changes or not reads:
        where = (
            "local_persistent" if "path" in kinds else "irreversible" if pays else "remote_mutation"
        )
        yield Guess(
            "write_effects", [where], changes or "nothing says that it only reads", loosens=False
        )
    yield Guess(
        "open_world",
        True,
        "others may have written what it gives; False where nobody else can",
        loosens=True,
    )
    by_field = "or by field, such as {'/*/id': 'record'} for what only the application writes"
    yield Guess("result_trust", "free_text", f"the same; {by_field}", loosens=True)
    for kind in ("path", "url", "command", "sql"):
        named = list(dict.fromkeys(name.replace("/", ".") for name, of in arguments if of == kind))
        if named:
            # the text of a declared command or query may be proven to only read
            yield Guess(
                f"{kind}_args",
                named,
                "by the argument's name or format",
                loosens=kind in ("command", "sql"),
            )


def _access(kinds: set[str], *, runs: str, pays: str, sends: str, only_reads: bool) -> Guess:
    """Guess what a tool touches; where a policy knows it, names of arguments tell it less."""
    access = [
        *(["code_execution"] if runs else []),
        *(["payment"] if pays else []),
        *(["external_send"] if sends else []),
        *(["network"] if "url" in kinds else []),
        *(["file_read"] if kinds & {"path", "command"} else []),
        *(["file_write"] if "command" in kinds or ("path" in kinds and not only_reads) else []),
    ]
    why = (
        "no argument is a path, a URL or a command"
        if not access
        else runs or pays or sends or "its arguments"
    )
    return Guess("access_kinds", access, why, loosens=True)


def _arguments(spec: ToolSpec) -> list[tuple[str, str, bool]]:
    return spec.facts.describe() if spec.facts is not None else []


def skeleton(found: Mapping[str, ToolSpec]) -> str:
    """Return a Python literal of guessed facts by tool name, for ``facts=`` or the keywords of
    ``govern``.

    Args:
        found: the tools, by the name that models call.
    """
    lines = [
        "# Guesses, each to be checked against what the tool does. What could ask less is a comment:",
        "# take the first # of its line away once you know that it is so.",
        "facts = {",
    ]
    for name, spec in found.items():
        # a line break would end the comment
        text = " ".join(f"{spec.tool_id}: {spec.declaration.description}".split())
        lines.append(f"    {name!r}: {{  # {''.join(filter(str.isprintable, text))[:_MAX_TEXT]}")
        for guess in guesses(spec):
            mark = "# " if guess.loosens else ""
            lines.append(f"        {mark}{guess.keyword!r}: {guess.value!r},  # guess: {guess.why}")
        lines.append("    },")
    return "\n".join((*lines, "}"))
