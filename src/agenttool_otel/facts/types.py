"""The shapes of facts as a policy sees them in ``input.facts``, beside those of the readers.

``argument`` is always the JSON pointer of the argument value within ``input.input``, and
``inferred`` is true where the kind of the argument was guessed from its schema format or name
rather than stated in the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, TypedDict

from agenttool_otel.names import ArgumentRole, Trust
from agenttool_otel.readers.types import PathFact, ShellFact, SqlFact, Surroundings, UrlFact
from agenttool_otel.values.words import OneOf

_Trust: TypeAlias = Annotated[str, OneOf(Trust)]
_Role: TypeAlias = Annotated[str, OneOf(ArgumentRole)]


class ProvenanceFact(TypedDict):
    """Where the tokens of one argument value were seen before in this session."""

    sources: list[str]  # user, tool:<tool_id>, unknown
    untrusted: bool  # seen only in text that outsiders may have written
    # False when the ledger forgot or skipped something that could have been this value's source
    certain: bool
    trust: _Trust  # of the least trusted part: user, trusted, record, inferred, free_text, unknown
    role: _Role  # target, bounded or content, by the argument's name
    seen_in: list[str]  # what was read where it was seen: a path, a name
    link: bool  # has a link that only such text has
    extended: bool  # has such a link with a path or query that the text had not
    made_up_id: bool  # a short id of which nothing is known
    private: list[str]  # confidential sources of what it holds
    broken: bool  # has a line break or control character where a single line is meant


class IntentFact(TypedDict):
    """Whether what the user asked for, in all turns of the session, calls for this kind of action;
    by words alone.
    """

    called_for: bool  # some word for what the tool does was used as something to be done
    matched: list[str]  # those words, as the tool's author or our table has them
    named: list[str]  # other words of the tool's name, title and hint that the user used
    delegated: bool  # the user asked to do what a text wants, such as the instructions of a mail


class ToolWords(NamedTuple):
    """What a tool is called by its author; of the tool, never of a call."""

    name: str
    hints: str = ""  # its title and search hint
    verbs: tuple[str, ...] = ()  # words for what it does, as its author stated them


class Facts(TypedDict):
    """``input.facts``."""

    paths: list[PathFact]  # path arguments, and places that shell commands use
    urls: list[UrlFact]  # URL arguments
    shell: list[ShellFact]  # shell command arguments
    sql: list[SqlFact]  # SQL arguments
    provenance: dict[str, ProvenanceFact]  # by JSON pointer of the argument
    traced: bool  # provenance has all texts and numbers of the call
    aimed: bool  # some argument is a target, or the call has none that could be one
    intent: IntentFact | None  # None where the context gives no words of the user's
    # JSON pointers of values that a person approved as a target, earlier in this session
    approved: list[str]


EMPTY_FACTS: Facts = {
    "paths": [],
    "urls": [],
    "shell": [],
    "sql": [],
    "provenance": {},
    "traced": False,
    "aimed": False,
    "intent": None,
    "approved": [],
}
"""The facts of a call whose tool has no such arguments; shared, so never change it."""


class Ledger(Protocol):
    """Where the values of a session were seen before, as the facts of a call ask for it."""

    @property
    def has_evidence(self) -> bool:
        """Whether anything is recorded that a value could be compared with."""

    def lookup(
        self,
        value: Any,
        *,
        name: str = "",
        family: str = "",
        tool: str = "",
        role: ArgumentRole = ArgumentRole.TARGET,
    ) -> ProvenanceFact:
        """Return where a value was seen before; never raises."""


@dataclass(frozen=True, slots=True)
class FactEnvironment(Surroundings):
    """The surroundings of a call's facts: those of the readers, and the session's memory."""

    ledger: Ledger | None = None  # where the session's values were seen before
