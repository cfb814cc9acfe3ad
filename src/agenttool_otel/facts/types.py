"""The shapes of facts as a policy sees them in ``input.facts``, beside those of the readers.

``argument`` is always the JSON pointer of the argument value within ``input.input``, and
``inferred`` is true where the kind of the argument was guessed from its schema format or name
rather than stated in the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, TypeAlias, TypedDict

from agenttool_otel.names import (
    ArgumentRole,
    ChangeKind,
    ChangeOperation,
    EffectKind,
    EffectOperation,
    Sourced,
    Trust,
)
from agenttool_otel.readers.types import PathFact, ShellFact, SqlFact, Surroundings, UrlFact
from agenttool_otel.values.words import OneOf

if TYPE_CHECKING:
    from agenttool_otel.facts.sources import ArgumentSources

_Trust: TypeAlias = Annotated[str, OneOf(Trust)]
_Sourced: TypeAlias = Annotated[str, OneOf(Sourced)]
_Role: TypeAlias = Annotated[str, OneOf(ArgumentRole)]
_Effect: TypeAlias = Annotated[str, OneOf(EffectOperation)]
_Kind: TypeAlias = Annotated[str, OneOf(EffectKind)]
_Change: TypeAlias = Annotated[str, OneOf(ChangeKind)]
_Done: TypeAlias = Annotated[str, OneOf(ChangeOperation)]
_Family: TypeAlias = Annotated[str, OneOf(("inet", "inet6", "unix"))]


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
    sourced: _Sourced  # unstated, listed or other, by the declaration's sources of the argument
    allowed: list[str]  # these sources: user, counterparties, globs of tool ids


class ClassifiedIntent(TypedDict, total=False):
    """What a classifier adds; left out where none was asked."""

    classified: bool  # a classifier of the host's is sure that the user's words want the call


class IntentFact(ClassifiedIntent):
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


class EffectCounts(TypedDict):
    """How much a body would change, without caches and clocks of the reviewed list."""

    created: int  # paths that are not there yet
    changed: int  # paths whose content is another
    deleted: int  # paths that are gone, each path of a deleted tree counted
    mode: int  # paths with other permission bits
    owner: int  # paths with another owner or group
    linked: int  # second names of files
    connections: int  # attempts to connect, none of which was let through
    reported: int  # rows, resources or messages that the body itself reports to change


class EffectPath(PathFact):
    """What a rehearsal would do to a path."""

    operation: _Effect  # created, changed, deleted, mode, owner or linked
    kind: _Kind  # file, directory, symlink or other
    executable: bool  # a file that somebody may run afterwards
    noise: bool  # a cache or a clock of the reviewed list
    below: int  # how many deleted paths lie below a deleted directory


class EffectConnection(TypedDict):
    """Where commands tried to connect to."""

    host: str  # the address; of a Unix socket, its path
    port: int  # the port; 0 for a Unix socket
    family: _Family  # inet, inet6 or unix
    attempts: int  # how many


class EffectCommand(TypedDict):
    """How a rehearsed command ended."""

    exit_code: int  # its exit status
    timed_out: bool  # its time was over


class ReportedChange(TypedDict):
    """What the body of a tool is about to change, as it reports itself."""

    kind: _Change  # sql, resource, api, message or other
    target: str  # the table, the resource, the receiver
    operation: _Done  # created, changed, deleted or sent
    count: int  # how many rows, resources or messages


class EffectsFact(TypedDict):
    """What a body would change: its rehearsal has shown that, or the body reports it itself."""

    counts: EffectCounts  # how much
    paths: list[EffectPath]  # what would happen to which path, in the order of the paths
    connections: list[EffectConnection]  # where it tried to connect to
    changes: list[ReportedChange]  # what the body reports itself; empty after a rehearsal
    complete: bool  # whether that is all; incomplete effects can't be committed
    reasons: list[str]  # why it is not all
    commands: list[EffectCommand]  # how its commands ended, in their order
    digest: str  # SHA-256 over effects and contents; what is approved is what is committed


class Rehearsed(TypedDict, total=False):
    """The facts of a second decision; left out in the first one."""

    effects: EffectsFact  # what the body would change


class Facts(Rehearsed):
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

    def is_from(
        self,
        value: Any,
        stated: ArgumentSources,
        *,
        name: str = "",
        family: str = "",
        tool: str = "",
    ) -> bool:
        """Return whether all of a value stands in the stated sources; never raises."""


@dataclass(frozen=True, slots=True)
class FactEnvironment(Surroundings):
    """The surroundings of a call's facts: those of the readers, and the session's memory."""

    ledger: Ledger | None = None  # where the session's values were seen before
