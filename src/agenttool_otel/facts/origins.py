"""Where the values of a call came from, in sentences for people; the values themselves are not in
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
        """The sentence with the argument's name; what lies below it may be keys that a
        model made up.
        """
        return f"{unescape_token(self.argument.split('/')[1]) if '/' in self.argument else 'input'} {self.sentence}"


def origins_of(facts: Facts) -> Iterator[Origin]:
    """Return what a person should know of where a call's values came from; nothing of values that
    are vouched for.
    """
    for pointer, fact in facts["provenance"].items():
        if sentence := _sentence(fact):
            yield Origin(pointer, sentence, ", ".join(fact["seen_in"]))


def _sentence(fact: ProvenanceFact) -> str:
    tools = ", ".join(
        source.removeprefix("tool:") for source in fact["sources"] if source.startswith("tool:")
    )
    if fact["private"]:
        return f"holds confidential data of {', '.join(name.removeprefix('tool:') for name in fact['private'])}"
    if fact["link"]:
        return f"holds a link that stands only in the output of {tools}"
    if fact["role"] == ArgumentRole.CONTENT or fact["trust"] in (
        Trust.USER,
        Trust.TRUSTED,
        Trust.RECORD,
    ):
        return ""
    if fact["untrusted"]:
        return (
            f"stands only in the output of {tools}"
            if tools
            else "was put together of pieces of untrusted output"
        )
    if fact["trust"] == Trust.INFERRED:
        return f"stands in a record of {tools}, by the name of its field"
    return (
        "stands in nothing that the user said or a tool told"
        if fact["certain"]
        else "may come from untrusted output"
    )
