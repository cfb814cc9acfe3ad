"""A skeleton of facts for tools that nobody declared: guesses from names, schema and description.

What could make a policy lenient is written as a comment, so that a skeleton pasted unread loosens
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.facts.argument_names import role_of_name, snake
from agenttool_otel.facts.intent import is_noun, objects_of, stem_of, verbs_in
from agenttool_otel.names import ArgumentRole, StatedWord
from agenttool_otel.values.tables import load_table

_LISTED: Final[dict[str, str]] = load_table(__package__, "guessed_words.toml")
_WORDS: Final = {effect: frozenset(map(stem_of, text.split())) for effect, text in _LISTED.items()}
_WRITING: Final = ("destroys", "pays", "sends", "writes")
_VERBS: Final = frozenset().union(*(_WORDS[effect] for effect in (*_WRITING, "reads", "runs")))
_HARMLESS: Final = _WORDS["reads"] | _WORDS["adds"]
_CONNECTIVES: Final = frozenset({"and", "or", "then", "to"})
_JOINING: Final = frozenset({"and", "or"})
_OPENERS: Final = frozenset({"tool", "function", "api", "use", "used", "useful", "lets"})
_LEADING: Final = frozenset({"to", "for", "that", "which"})
_BEGINNING: Final = 8
"""Words of a sentence in which its first verb stands: "This is a tool that gets"."""
_PASSIVE: Final = "ed"
_OF_AN_ACTION: Final = "tion"
_LETTERS: Final = re.compile(r"[a-z]+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE: Final = re.compile(r"(.*?)(?:[.!?](?=\s|$)|\n\s*\n|$)", re.S)
_ADDED: Final = re.compile(r",\s+(?:and\s+|thus\s+|thereby\s+)?([a-z]+ing)\b")
"""What a sentence adds of a tool: ", ensuring that it is safe"."""
_ABBREVIATED: Final = re.compile(r"\b(e\.g|i\.e|etc|vs|incl)\.", re.I)
_MAX_TEXT: Final = 80


class Guess(NamedTuple):
    """One fact that a tool may have."""

    keyword: str
    value: Any
    why: str
    loosens: bool  # whether a policy may ask or deny less where it is stated


def undeclared(spec: ToolSpec) -> bool:
    """Return whether it is not stated whether a tool only reads."""
    return "read_only" in spec.interface.inferred


class _Words:
    """The words of a tool's name and of the first sentence of its description."""

    def __init__(self, name: str, description: str) -> None:
        words = _LETTERS.findall(_HUMPS.sub(" ", name).lower())
        self._name = dict(_verbs_of_name(words))
        sentence = _SENTENCE.match(_ABBREVIATED.sub(r"\1", description.strip()))
        text = "" if sentence is None else sentence[1]
        self._sentence = dict(verbs_in(text))
        self._text = text.lower()
        words += _LETTERS.findall(text.lower())
        self._about = {stem_of(word) for word in words}

    def shows(self, effect: str) -> str:
        """Return the word that shows an effect, for a reader; an empty text where there is none."""
        known = _WORDS[effect]
        for stem, word in self._name.items():
            if stem in known:
                return f"the name has {word}"
        if effect == "runs" and not self.is_about("code"):
            return ""
        for stem, word in self._sentence.items():
            if stem in known:
                return f"the description has {word}"
        return ""

    def shows_reading(self) -> str:
        """Return what shows that it reads, or an empty text: a verb of its name, or the one that its sentence
        begins with, where the sentence adds no other.

        "Perform data checks" shows nothing, nor does "Inspect and secure the parts".
        """
        for stem, word in self._name.items():
            if stem in _WORDS["reads"]:
                return f"the name has {word}"
        for added in _ADDED.findall(self._text):
            if stem_of(added) not in _HARMLESS:
                return ""
        words = _LETTERS.findall(self._text)
        for at in _places_of_first_verb(words):
            if stem_of(words[at]) in _WORDS["reads"] and not _joins_another(words, at):
                return f"the description has {words[at]}"
        return ""

    def shows_payment(self) -> str:
        """Return what indicates that it moves money, or an empty text: "refund", "send money", "place an
        order".
        """
        pays = self.shows("pays")
        if pays:
            return pays
        orders = self.shows("orders")
        if orders:
            # "place an order", and not "place a marker"
            is_purchase = "order" in self._about or self.is_about("money")
            return orders if is_purchase else ""
        if not self.is_about("money"):
            return ""
        changes = self.shows("sends") or self.shows("writes")
        if changes:
            return changes
        # "list_invoices" only reads about money
        return "" if self.shows("reads") else "it is about money"

    def is_about(self, what: str) -> bool:
        """Return whether some word of a list stands anywhere in the name or the sentence."""
        return not _WORDS[what].isdisjoint(self._about)


def _places_of_first_verb(words: list[str]) -> Iterator[int]:
    """Yield where the first verb of a sentence may stand: at its beginning, or behind "a tool that"."""
    if words:
        yield 0
    beginning = words[:_BEGINNING]
    if _OPENERS.isdisjoint(beginning):
        return
    for at, before in enumerate(words[: _BEGINNING - 1]):
        if before in _LEADING and at + 1 < len(words):
            yield at + 1


def _joins_another(words: list[str], at: int) -> bool:
    """Return whether the verb at a place is joined to one that does not read: "inspect and secure"."""
    following = words[at + 1 : at + 3]
    if len(following) < 2 or following[0] not in _JOINING:
        return False
    return stem_of(following[1]) not in _WORDS["reads"]


def _verbs_of_name(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the verbs of a tool's name, each with its stem first.

    A word that is a noun as often (``email``, ``order``) is a verb where nothing else is
    (``email_person``, but not ``search_emails`` or ``order_status``), or behind a connective
    (``find_and_update``).
    """
    for at, word in enumerate(words):
        stem = stem_of(word)
        if stem not in _VERBS:
            continue
        if at > 0 and word.endswith((_PASSIVE, _OF_AN_ACTION)):
            continue  # "orders_created", "get_reservation"
        before = words[at - 1] if at > 0 else ""
        # "email_person"; "order_list" lists orders
        is_first_verb = at == 0 and not any(map(_is_plain_verb, words[1:]))
        if _is_plain_verb(word) or is_first_verb or before in _CONNECTIVES:
            yield stem, word


def _is_plain_verb(word: str) -> bool:
    """Return whether a word is a verb and no noun, or a verb of reading such as ``list``."""
    stem = stem_of(word)
    if stem not in _VERBS:
        return False
    return stem in _WORDS["reads"] or not is_noun(stem)


class _Evidence(NamedTuple):
    """Why a tool may have which effect; an empty text where nothing shows it."""

    arguments: list[tuple[str, str]]  # name of an argument, and its kind: path, url, command, sql
    kinds: set[str]
    runs: str
    pays: str
    sends: str
    destroys: str
    reads: str
    changes: str  # any of them that leaves something changed

    @property
    def may_change(self) -> bool:
        """Whether nothing shows that it only reads."""
        return bool(self.changes or not self.reads)

    @property
    def takes_code(self) -> bool:
        """Whether its text is a command or SQL, which each call may be classified by."""
        return bool(self.kinds & {"command", "sql"})


def _evidence(spec: ToolSpec) -> _Evidence:
    arguments = []
    for pointer, kind, _ in _arguments(spec):
        arguments.append((pointer.removeprefix("/").removesuffix("/*"), kind))
    kinds = {kind for _, kind in arguments}
    words = _Words(spec.name, spec.declaration.description or "")
    runs = words.shows("runs")
    if not runs and "command" in kinds:
        runs = "it takes a command"
    pays = words.shows_payment()
    sends = words.shows("sends")
    destroys = words.shows("destroys")
    return _Evidence(
        arguments=arguments,
        kinds=kinds,
        runs=runs,
        pays=pays,
        sends=sends,
        destroys=destroys,
        reads=words.shows_reading(),
        changes=destroys or pays or words.shows("writes") or sends or runs,
    )


def guesses(spec: ToolSpec, others: Iterable[ToolSpec] = ()) -> Iterator[Guess]:
    """Guess the facts of one tool, the ones that restrict first.

    Args:
        spec: the tool.
        others: the tools beside it, which may give what its arguments name.
    """
    evidence = _evidence(spec)
    yield from _safety(evidence)
    yield _access(evidence)
    if evidence.may_change:
        why = evidence.changes or "nothing shows that it only reads"
        yield Guess("write_effects", [_write_effect(evidence)], why, loosens=False)
    yield Guess(
        "open_world",
        True,
        "others may have written what it gives; False where nobody else can",
        loosens=True,
    )
    by_field = "or by field, such as {'/*/id': 'record'} for what only the application writes"
    yield Guess("result_trust", "free_text", f"the same; {by_field}", loosens=True)
    yield from _kinds_of_arguments(evidence)
    if evidence.may_change:
        yield from _sources(spec, evidence, others)


def _sources(spec: ToolSpec, evidence: _Evidence, others: Iterable[ToolSpec]) -> Iterator[Guess]:
    """Guess where the values that decide whom or what a writing tool reaches may come from."""
    properties = spec.declaration.input_contract.model_input_schema.get("properties", {})
    if not properties:
        return
    followed = {name for name, _ in evidence.arguments}
    readers = [other for other in others if not _evidence(other).may_change]
    sources: dict[str, list[str]] = {}
    for name, node in properties.items():
        if name in followed or role_of_name(name) is not ArgumentRole.TARGET or _is_closed(node):
            continue
        givers = [reader.name for reader in readers if _gives(reader, spec, name)]
        sources[name] = [StatedWord.USER.value, StatedWord.COUNTERPARTIES.value, *givers]
    if sources:
        why = "who may say whom or what it reaches; anything else is asked about"
        yield Guess("sources", sources, why, loosens=True)


def _gives(reader: ToolSpec, spec: ToolSpec, argument: str) -> bool:
    """Return whether a reader of the same namespace works on what an argument names."""
    if reader.declaration.namespace != spec.declaration.namespace:
        return False
    nouns = {stem_of(word) for word in snake(argument).split("_")}
    return not nouns.isdisjoint(objects_of(reader.name))


def _is_closed(node: Any) -> bool:
    """Return whether an argument takes a word of a list, or a truth value."""
    return isinstance(node, Mapping) and ("enum" in node or node.get("type") == "boolean")


def _safety(evidence: _Evidence) -> Iterator[Guess]:
    """Guess ``read_only`` and ``destructive``."""
    if evidence.takes_code:
        why = "its text is a command or SQL"
        yield Guess("read_only", "classifier:command_read_only", why, loosens=True)
        yield Guess("destructive", "classifier:command_destructive", why, loosens=True)
        return
    if evidence.may_change:
        why = evidence.changes or "nothing shows that it only reads"
        yield Guess("read_only", False, why, loosens=True)
    else:
        why = f"{evidence.reads}, and nothing shows a change"
        yield Guess("read_only", True, why, loosens=True)
    if evidence.destroys:
        yield Guess("destructive", True, evidence.destroys, loosens=False)


def _write_effect(evidence: _Evidence) -> str:
    if "path" in evidence.kinds:
        return "local_persistent"
    if evidence.pays:
        return "irreversible"
    return "remote_mutation"


def _kinds_of_arguments(evidence: _Evidence) -> Iterator[Guess]:
    """Guess ``path_args`` and its like."""
    for kind in ("path", "url", "command", "sql"):
        names = [name.replace("/", ".") for name, of in evidence.arguments if of == kind]
        if not names:
            continue
        # the text of a declared command or query may be proven to only read
        loosens = kind in ("command", "sql")
        distinct = list(dict.fromkeys(names))
        yield Guess(f"{kind}_args", distinct, "by the argument's name or format", loosens=loosens)


def _access(evidence: _Evidence) -> Guess:
    """Guess what a tool touches; where a policy states it, names of arguments count less."""
    kinds = evidence.kinds
    access = []
    if evidence.runs:
        access.append("code_execution")
    if evidence.pays:
        access.append("payment")
    if evidence.sends:
        access.append("external_send")
    if "url" in kinds:
        access.append("network")
    if kinds & {"path", "command"}:
        access.append("file_read")
    if "command" in kinds or ("path" in kinds and evidence.may_change):
        access.append("file_write")
    if not access:
        why = "no argument is a path, a URL or a command"
    else:
        why = evidence.runs or evidence.pays or evidence.sends or "its arguments"
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
        "# take the first # of its line away once you have checked that it is so.",
        "facts = {",
    ]
    for name, spec in found.items():
        lines.append(f"    {name!r}: {{  # {_comment(spec)}")
        for guess in guesses(spec, found.values()):
            mark = "# " if guess.loosens else ""
            lines.append(f"        {mark}{guess.keyword!r}: {guess.value!r},  # guess: {guess.why}")
        lines.append("    },")
    lines.append("}")
    return "\n".join(lines)


def _comment(spec: ToolSpec) -> str:
    # a line break would end the comment
    text = " ".join(f"{spec.tool_id}: {spec.declaration.description}".split())
    return "".join(filter(str.isprintable, text))[:_MAX_TEXT]
