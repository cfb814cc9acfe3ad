"""One governed tool, resolved at decoration: its records, and all that a call can look up instead of working out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenttool_otel.catalog.options import Classifier
from agenttool_otel.catalog.parameters import Parameters
from agenttool_otel.catalog.schema import SchemaCheck
from agenttool_otel.records import ExecutionProfile, PermissionProfile, ToolDeclaration, ToolInterface
from agenttool_otel.records.values import snapshot

if TYPE_CHECKING:
    from agenttool_otel.facts.plan import FactPlan

__all__ = ["Safety", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class Safety:
    """The safety facts of a tool, some of which may depend on the input.

    Attributes:
        read_only: see GovernOptions, as all.
        destructive: destroys something.
        open_world: touches what nobody here controls.
        concurrency_safe: may run beside others.
        static: whether none of them depends on the input.
    """

    read_only: Classifier
    destructive: Classifier
    open_world: Classifier
    concurrency_safe: Classifier
    static: bool


@dataclass(slots=True)
class ToolSpec:
    """Everything about one tool that does not change from call to call.

    Attributes:
        declaration: the tool_declaration.
        interface: the tool_interface.
        execution: the execution profile.
        permission: the permission profile.
        parameters: the callable's parameters; ``None`` for a framework object that binds its own.
        check: compiled model-facing schema.
        output_check: compiled output schema, if there is one.
        facts: how arguments become facts; ``None`` when the tool has no such arguments.
        safety: safety facts.
        validate: the developer's value check.
        sensitive: JSON pointers or names that are never shown.
        redact_result: JSON pointers in the result that are always redacted.
        max_inline_chars: limit of the contract.
        persistence: strategy of the contract.
        ownership: managed, mcp or custom.
        digest: digest of declaration, interface and profile; an approval is bound to it.
        span_name: name of the span.
        start_attributes: span attributes known before any call.
        metric_attributes: metric labels known before any call.
        policy_tool: ``input.tool`` for a tool with static safety facts; never changed.
        policy_profile: ``input.permission_profile``; never changed.
        exempt: reads persisted results itself, so that its own are never persisted (circular guard).
        unknown: stands for a name that no tool has.
    """

    declaration: ToolDeclaration
    interface: ToolInterface
    execution: ExecutionProfile
    permission: PermissionProfile
    parameters: Parameters | None
    check: SchemaCheck
    output_check: SchemaCheck | None
    facts: FactPlan | None
    safety: Safety
    validate: Callable[[Mapping[str, Any]], None] | None
    sensitive: tuple[str, ...]
    redact_result: tuple[str, ...]
    max_inline_chars: int | None
    persistence: str | None
    ownership: str
    digest: str
    span_name: str
    start_attributes: dict[str, Any]
    metric_attributes: dict[str, str]
    policy_tool: dict[str, Any]
    policy_profile: dict[str, Any]
    exempt: bool = False
    unknown: bool = False

    @property
    def tool_id(self) -> str:
        """The tool's id."""
        return self.declaration.tool_id

    @property
    def name(self) -> str:
        """The name that models call."""
        return self.declaration.name

    def safety_facts(self, arguments: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, bool]:
        """Work out the safety facts of one call; a classifier that fails gives the dangerous answer.

        Args:
            arguments: the permission input.
            facts: the facts established for it.
        """
        read_only = _classify(self.safety.read_only, arguments, facts, unknown=False)
        destructive = _classify(self.safety.destructive, arguments, facts, unknown=True)
        return {
            "read_only": read_only and not destructive,
            "destructive": destructive,
            "open_world": _classify(self.safety.open_world, arguments, facts, unknown=True, read_only=read_only),
            "concurrency_safe": _classify(
                self.safety.concurrency_safe, arguments, facts, unknown=False, read_only=read_only
            ),
        }


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
                return any(command.get("destructive", command.get("unbounded_write", True)) for command in commands)
            case _:
                return unknown
    try:
        answer = fact(snapshot(arguments))  # what it does to its argument is not what is decided
    except Exception:
        return unknown
    return answer if isinstance(answer, bool) else unknown
