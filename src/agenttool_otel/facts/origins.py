"""Where the values of a call came from, in sentences for people; the values themselves are not in
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agenttool_otel.facts.types import Facts, ProvenanceFact
from agenttool_otel.names import ArgumentRole, Trust
from agenttool_otel.values.pointers import unescape_token


class Origin(NamedTuple):
    """Where one value came from."""

    argument: str  # JSON pointer
    sentence: str  # names tools alone
    seen_in: str  # what was read there, which is content

    @property
    def named(self) -> str:
        """The sentence with the argument's name, without the keys below it, which a model may have
        made up.
        """
        if "/" not in self.argument:
            return f"input {self.sentence}"
        name = unescape_token(self.argument.split("/")[1])
        return f"{name} {self.sentence}"


def origins_of(facts: Facts) -> Iterator[Origin]:
    """Return what a person should know of where a call's values came from; nothing of values that
    are vouched for.
    """
    for pointer, fact in facts["provenance"].items():
        sentence = _sentence(fact)
        if sentence:
            yield Origin(pointer, sentence, ", ".join(fact["seen_in"]))


def _sentence(fact: ProvenanceFact) -> str:
    if fact["private"]:
        return f"holds confidential data of {_tools_in(fact['private'])}"
    tools = _tools_in(fact["sources"])
    if fact["link"]:
        return f"holds a link that stands only in the output of {tools}"
    if fact["role"] == ArgumentRole.CONTENT or fact["trust"] in _VOUCHED_FOR:
        return ""
    if fact["untrusted"]:
        if tools:
            return f"stands only in the output of {tools}"
        return "was put together of pieces of untrusted output"
    if fact["trust"] == Trust.INFERRED:
        return f"stands in a record of {tools}, by the name of its field"
    if fact["certain"]:
        return "stands neither in the user's words nor in the output of a tool"
    return "may come from untrusted output"


def source_of(fact: ProvenanceFact) -> str:
    """Return where a value came from, also of one that is vouched for.

    Args:
        fact: what the ledger knows of the value.
    """
    sentence = _sentence(fact)
    if sentence:
        return sentence
    if fact["trust"] == Trust.USER:
        return "the user wrote"
    tools = _tools_in(fact["sources"])
    return f"{tools} gave" if tools else "stands nowhere"


_VOUCHED_FOR: Final = (Trust.USER, Trust.TRUSTED, Trust.RECORD)


def _tools_in(sources: Sequence[str]) -> str:
    """Return the names of the tools among sources: not ``user`` or ``unknown``."""
    names: list[str] = []
    for source in sources:
        kind, colon, name = source.partition(":")
        if colon and kind == "tool":
            names.append(name)
    return ", ".join(names)
