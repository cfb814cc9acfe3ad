"""The dialects of coding agents, from their data files: what an agent sends to a hook, and which
answers it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import HookPart
from agenttool_otel.values.tables import load_table

_DATA: Final = "data"
_POINTER: Final = r"^(/[A-Za-z_]+)+$"
_BLOCKED: Final = 2
"""The exit status by which a hook blocks a call."""


class Row(BaseModel):
    """Base of the parts of a dialect: another type or an unknown member is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Switch(Row):
    """What in a settings file keeps an agent from calling hooks.

    Attributes:
        pointer: JSON pointer of the member.
        equals: the value that switches hooks off.
        holds: the word in a list that does.
    """

    pointer: str = Field(pattern=_POINTER)
    equals: bool | None = Field(default=None, alias="is")
    holds: str | None = None


class SettingsPlace(Row):
    """Where an agent's hooks are configured.

    Attributes:
        kind: ``json`` for a settings file with ``hooks``, ``plugin`` for a file that is all ours.
        user: the file of this user.
        project: the file of a project, below its folder.
        home_variable: environment variable that stands for the folder of ``user``.
        project_variable: environment variable in which the agent passes the project's folder.
        timeout: how long the agent waits for the hook, in the agent's own unit.
        name: name that the hook's entry has, where entries have one.
        off: what switches hooks off.
        after: what a person has to do after an installation.
    """

    kind: Literal["json", "plugin"]
    user: str
    project: str
    home_variable: str = ""
    project_variable: str = ""
    timeout: int
    name: str = ""
    off: tuple[Switch, ...] = ()
    after: str = ""


class PayloadFields(Row):
    """Where in a payload something stands: JSON pointers, of which the first that is there counts.

    Attributes:
        session: the agent's session.
        call: id of the call; empty where the agent gives none.
        turn: the turn, or prompt, that the call is of.
        cwd: directory of the session.
        tool: the tool's name.
        arguments: its arguments.
        mode: the agent's permission mode.
        sub_agent: the kind of sub-agent that calls.
        result: what the tool returned.
        error: why it failed.
    """

    session: tuple[str, ...]
    call: tuple[str, ...] = ()
    turn: tuple[str, ...] = ()
    cwd: tuple[str, ...]
    tool: tuple[str, ...]
    arguments: tuple[str, ...]
    mode: tuple[str, ...] = ()
    sub_agent: tuple[str, ...] = ()
    result: tuple[str, ...]
    error: tuple[str, ...] = ()


class McpNames(Row):
    """How tools of MCP servers are recognised.

    Attributes:
        prefix: beginning of their names; empty where they have none of their own.
        server: JSON pointer of the server's name in a payload.
    """

    prefix: str = ""
    server: str = ""


class AnswerForm(Row):
    """What a hook prints. In ``stdout`` the texts ``{event}``, ``{reason}`` and ``{arguments}`` are
    replaced.

    Attributes:
        exit: its exit status.
        stdout: a JSON object; ``None`` for nothing.
        stderr: a text.
        modes: the agent's permission modes in which the answer is known to work; empty for all.
        merges: whether changed arguments are merged into those that were sent.
    """

    exit: Literal[0, 2] = 0
    stdout: dict[str, Any] | None = None
    stderr: Literal["", "{reason}"] = ""
    modes: tuple[str, ...] = ()
    merges: bool = False

    @model_validator(mode="after")
    def _blocks_in_one_way(self) -> Self:
        # status 2 without a reason on stderr lets the call run in three agents
        if self.exit == _BLOCKED and (self.stdout is not None or not self.stderr):
            raise ValueError("status 2 needs a reason on stderr, and nothing on stdout")
        if self.exit != _BLOCKED and (self.stdout is None or self.stderr):
            raise ValueError("status 0 needs an object on stdout, and nothing on stderr")
        return self


class RequestForms(Row):
    """The answers to an event at which the agent is about to ask a person. Silence lets it ask.

    Attributes:
        deny: the call does not run, and nobody is asked.
        allow: it runs, and nobody is asked; ``None`` where that is not known to work.
        adds: arguments that the agent adds to those of the call, for the person to see.
    """

    deny: AnswerForm
    allow: AnswerForm | None = None
    adds: tuple[str, ...] = ()


class AnswerForms(Row):
    """The answers to a call that is to be decided. Permission is silence: the agent's own rules
    still count.

    Attributes:
        deny: the call does not run.
        ask: the agent asks a person; ``None`` where it is not known to.
        change: the call runs with other arguments; ``None`` where it is not known to.
        request: those where the agent is about to ask a person; ``None`` without such an event.
    """

    deny: AnswerForm
    ask: AnswerForm | None = None
    change: AnswerForm | None = None
    request: RequestForms | None = None


class KnownTool(Row):
    """A tool of the agent's own, and the facts of it that were reviewed.

    Attributes:
        facts: the facts, as the keywords of ``govern``.
        arguments: the JSON types of its arguments by name; others are possible.
        required: those that are always there.
        patch: the argument that is a patch, in the form of ``apply_patch``.
        stays_open: programs that the tool may leave open, with input that no hook sees.
    """

    facts: dict[str, Any]
    arguments: dict[str, str] = Field(default_factory=dict)
    required: tuple[str, ...] = ()
    patch: str = ""
    stays_open: frozenset[str] = frozenset()

    @property
    def schema_of_arguments(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, with those that are read from a patch."""
        properties: dict[str, Any] = {name: {"type": kind} for name, kind in self.arguments.items()}
        if self.patch:
            paths = {"type": "array", "items": {"type": "string"}}
            properties |= {"paths": paths, "deleted_paths": paths}
        return {"type": "object", "properties": properties, "required": list(self.required)}


class Dialect(Row):
    """How one agent calls hooks.

    Attributes:
        title: the agent's name for people.
        namespace: the namespace of its tools.
        settings: where hooks are configured.
        events: what a hook does at which event.
        fields: where in a payload something stands.
        mcp: how tools of MCP servers are recognised.
        answers: which answers it takes.
        tools: its own tools.
    """

    title: str
    namespace: str
    settings: SettingsPlace
    events: dict[str, HookPart]
    fields: PayloadFields
    mcp: McpNames
    answers: AnswerForms
    tools: dict[str, KnownTool]

    @property
    def deciding(self) -> str:
        """The event at which calls are decided."""
        return next(event for event, part in self.events.items() if part is HookPart.DECIDE)

    def waits_at(self, event: str) -> bool:
        """Return whether the agent waits for an answer at an event: the call has not run.

        Args:
            event: one of ``events``.
        """
        return self.events[event] in (HookPart.DECIDE, HookPart.PERMIT)

    @model_validator(mode="after")
    def _decides_at_one_event(self) -> Self:
        if list(self.events.values()).count(HookPart.DECIDE) != 1:
            raise ValueError("calls are decided at one event")
        if HookPart.PERMIT in self.events.values() and self.answers.request is None:
            raise ValueError("an event at which the agent asks needs answers")
        return self


def _names() -> tuple[str, ...]:
    folder = resources.files(__package__).joinpath(_DATA)
    names = [entry.name for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return tuple(sorted(name.removesuffix(".toml") for name in names))


AGENTS: Final = _names()
"""The agents whose dialect is known."""


@cache
def dialect_of(agent: str) -> Dialect:
    """Return the dialect of an agent.

    Args:
        agent: one of ``AGENTS``.

    Raises:
        ConfigurationError: there is no such agent.
    """
    if agent not in AGENTS:
        raise ConfigurationError(f"no agent {agent!r} is known; it is one of {', '.join(AGENTS)}")
    return read_dialect(load_table(__package__, f"{_DATA}/{agent}.toml"))


def read_dialect(data: Mapping[str, Any]) -> Dialect:
    """Read a dialect.

    Args:
        data: the content of its file.

    Raises:
        ConfigurationError: a member is unknown, missing or of another type.
    """
    try:
        return Dialect.model_validate(data)
    except ValidationError as error:
        places = ["/".join(map(str, found["loc"])) for found in error.errors()]
        raise ConfigurationError(f"no dialect: {', '.join(places)}") from None
