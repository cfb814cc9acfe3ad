"""One governed tool, resolved at decoration: its records, and all that a call can look up instead
of working out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from agenttool_otel.catalog.options import Classifier
from agenttool_otel.catalog.parameters import Parameters
from agenttool_otel.catalog.schema import SchemaCheck
from agenttool_otel.facts.types import ToolWords
from agenttool_otel.names import Lifecycle
from agenttool_otel.records import (
    ExecutionProfile,
    PermissionProfile,
    ToolDeclaration,
    ToolInterface,
)
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.snapshot import snapshot

if TYPE_CHECKING:
    from agenttool_otel.facts.outputs import OutputTrust
    from agenttool_otel.facts.plan import FactPlan


class Safety(NamedTuple):
    """The safety facts of a tool, some of which may depend on the input."""

    read_only: Classifier  # see GovernOptions, as all
    destructive: Classifier  # destroys something
    open_world: Classifier  # reaches what nobody here controls
    concurrency_safe: Classifier  # may run beside others
    static: bool  # whether none of them depends on the input


class ToolRecords(NamedTuple):
    """The records of one tool."""

    declaration: ToolDeclaration
    interface: ToolInterface
    execution: ExecutionProfile
    permission: PermissionProfile

    def digest(self) -> str:
        """Return the digest to which an approval is bound; how a tool is executed is not in it."""
        bound = (self.declaration, self.interface, self.permission)
        return digest([record.to_json_object() for record in bound])


@dataclass(slots=True)
class ToolSpec:
    """Everything about one tool that does not change from call to call.

    The records and the digest are made when they are first read: of a catalog of 10,000 tools a
    program calls a few. They were made once when the tool was declared, so that what can't be
    stated was refused there.
    """

    make: Callable[[], ToolRecords]  # makes the records
    made: InitVar[ToolRecords]  # those that the declaration was checked with
    # the callable's parameters; ``None`` for a framework object that binds its own
    parameters: Parameters | None
    check: SchemaCheck  # compiled model-facing schema
    output_check: SchemaCheck | None  # compiled output schema, if there is one
    # how arguments become facts; ``None`` when the tool has no such arguments
    facts: FactPlan | None
    # the same for arguments that are none of the schema's, where ``facts`` is ``None``
    misfit_facts: FactPlan | None
    output_trust: OutputTrust  # how far which field of a result is trusted
    safety: Safety  # safety facts
    validate: Callable[[Mapping[str, Any]], None] | None  # the developer's value check
    sensitive: tuple[str, ...]  # JSON pointers or names that are never shown
    redact_result: tuple[str, ...]  # JSON pointers in the result that are always redacted
    max_inline_chars: int | None  # limit of the contract
    persistence: str | None  # strategy of the contract
    ownership: str  # managed, mcp or custom
    span_name: str  # name of the span
    start_attributes: dict[str, Any]  # span attributes known before any call
    metric_attributes: dict[str, str]  # metric labels known before any call
    policy_tool: dict[str, Any]  # ``input.tool`` for a tool with static safety facts; never changed
    policy_profile: dict[str, Any]  # ``input.permission_profile``; never changed
    # reads persisted results itself, so that its own are never persisted (circular guard)
    exempt: bool = False
    unknown: bool = False  # stands for a name that no tool has
    refusal: str = ""  # why the tool can't be governed, so that each call is refused
    verbs: tuple[str, ...] = ()  # words for what it does, as stated
    is_source: bool = False  # whether the ``sources`` of some tool of its Governor name it
    # arguments that are the caller's own objects when it runs
    by_reference: frozenset[str] = frozenset()
    watched_calls: int = 0  # calls that were watched for arguments changed in place
    # arguments that are declared to be changed
    warned_of: set[str] = field(default_factory=set)
    declaration: ToolDeclaration = field(init=False, repr=False)  # the tool_declaration
    interface: ToolInterface = field(init=False, repr=False)  # the tool_interface
    execution: ExecutionProfile = field(init=False, repr=False)  # the execution profile
    permission: PermissionProfile = field(init=False, repr=False)  # the permission profile
    # digest of declaration, interface and permission profile; an approval is bound to it
    digest: str = field(init=False, repr=False)
    tool_id: str = field(init=False)
    name: str = field(init=False)  # the name that models call
    namespace: str = field(init=False)
    aliases: tuple[str, ...] = field(init=False)
    waits: bool = field(init=False)  # whether models see it only once it was asked for
    locks: frozenset[str] = field(init=False)  # names of the resources that a call holds alone
    exclusive: bool = field(init=False)  # whether a call has the context of its session for itself
    # whether all that it does is done by the programs that it starts by arun_command
    runs_commands: bool = field(init=False)
    # whether a process or a host that was there before does what it does
    runs_elsewhere: bool = field(init=False)
    # whether its body reports what it is about to do, by report_effects
    reports_effects: bool = field(init=False)
    # what it is called, as the fact of the user's intent reads it
    words: ToolWords = field(init=False)
    # whether the contract may change or keep a result of whatever size
    shapes_result: bool = field(init=False)

    # who answers for its Governor, once there is one
    _channel: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self, made: ToolRecords) -> None:
        declaration, interface, execution, permission = made
        self.tool_id = declaration.tool_id
        self.name = declaration.name
        self.namespace = declaration.namespace
        self.aliases = tuple(declaration.aliases)
        self.waits = _waits(declaration, interface)
        self.locks = frozenset(getattr(execution, "resource_locks", ()))
        self.exclusive = bool(getattr(execution, "requires_exclusive_context", False))
        self.reports_effects = bool(getattr(execution, "reports_effects", False))
        self.runs_commands = bool(getattr(execution, "runs_commands", False))
        self.runs_elsewhere = bool(getattr(execution, "runs_elsewhere", False))
        hints = (declaration.title, declaration.search_hint)
        self.words = ToolWords(self.name, " ".join(filter(None, hints)), self.verbs)
        self.shapes_result = bool(
            self.redact_result
            or self.persistence
            or self.max_inline_chars is not None
            or permission.redaction_required
            or permission.data_sensitivity
        )

    def __getattr__(self, name: str) -> Any:
        """Make what is read for the first time; from then on it is there, at no cost."""
        if name == "digest":
            # of records that nobody has changed: the channel is the Governor's, and in no digest
            self.digest = self.make().digest()
        elif name in ToolRecords._fields:
            records = self.make()
            self.declaration, self.interface, self.execution, self.permission = records
            if self._channel is not None:
                self.state_channel(self._channel)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return object.__getattribute__(self, name)

    def state_channel(self, channel: str) -> None:
        """State on the records who answers for the tool's Governor.

        Args:
            channel: the word of it.
        """
        self._channel = channel
        try:
            interface = object.__getattribute__(self, "interface")
            permission = object.__getattribute__(self, "permission")
        except AttributeError:
            return  # not made yet
        interface.permission_channel = permission.permission_channel = channel

    def safety_facts(
        self, arguments: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> dict[str, bool]:
        """Work out the safety facts of one call; a classifier that fails gives the
        dangerous answer.
        """
        read_only = _classify(self.safety.read_only, arguments, facts, unknown=False)
        destructive = _classify(self.safety.destructive, arguments, facts, unknown=True)
        return {
            "read_only": read_only and not destructive,
            "destructive": destructive,
            "open_world": _classify(
                self.safety.open_world, arguments, facts, unknown=True, read_only=read_only
            ),
            "concurrency_safe": _classify(
                self.safety.concurrency_safe, arguments, facts, unknown=False, read_only=read_only
            ),
        }


def _waits(declaration: ToolDeclaration, interface: ToolInterface) -> bool:
    if interface.always_load:
        return False
    if interface.should_defer:
        return True
    return declaration.lifecycle in (Lifecycle.DEFERRED, Lifecycle.DEPRECATED)


def _classify(
    fact: Classifier,
    arguments: Mapping[str, Any],
    facts: Mapping[str, Any],
    *,
    unknown: bool,
    read_only: bool = False,
) -> bool:
    if isinstance(fact, bool):
        return fact
    if isinstance(fact, str):
        commands = [*facts.get("shell", ()), *facts.get("sql", ())]
        match fact:
            case "same_as:is_read_only":
                return read_only
            case "classifier:command_read_only":
                return bool(commands) and all(command["read_only"] is True for command in commands)
            case "classifier:command_destructive":
                return any(
                    command.get("destructive", command.get("unbounded_write", True))
                    for command in commands
                )
            case _:
                return unknown
    try:
        answer = fact(snapshot(arguments))  # what it does to its argument is not what is decided
    except Exception:
        return unknown
    return answer if isinstance(answer, bool) else unknown
