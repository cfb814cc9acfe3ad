"""What a hook may emit, as types (standard, "Hook outputs"): a hook returns one of these, several
in order, or nothing.

An output is checked when it is made, so that a wrong one is a failure of the hook that made it.
What each one can do depends on when the hook runs; ``docs/hooks.md`` has the table. None of them
lifts a deny or an ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agenttool_otel.context.validate import whole_object
from agenttool_otel.names import Behavior


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Message:
    """A message for people or for the runtime; it comes redacted, in the envelope's ``hook_messages``.

    Attributes:
        text: the message.
        level: info, warning or error, or a word of the host's own.
    """

    kind: ClassVar[str] = "message"
    text: str
    level: str = "info"

    def __post_init__(self) -> None:
        _text("a message", self.text)
        _text("a level", self.level)


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of the hook's own work, numbered within the call and emitted as a progress event.

    Attributes:
        message: what goes on.
        percent: 0 to 100.
    """

    kind: ClassVar[str] = "progress"
    message: str = ""
    percent: float | None = None

    def __post_init__(self) -> None:
        _text("a progress message", self.message)
        if self.percent is not None:
            if isinstance(self.percent, bool) or not isinstance(self.percent, (int, float)):
                raise TypeError("percent is a number")
            if not 0 <= self.percent <= 100:
                raise ValueError("percent lies between 0 and 100")


@dataclass(frozen=True, slots=True)
class UpdatedInput:
    """A whole new input; recorded as a mutation, validated like a model's, and decided again.

    Attributes:
        arguments: all arguments, not only the changed ones. Internal-only parameters of the tool
            may be among them: they go to the executor and are in no model-facing schema, no policy
            input and no record.
        reason: why, for the record.
    """

    kind: ClassVar[str] = "updated_input"
    arguments: Mapping[str, Any]
    reason: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, Mapping) or not all(
            isinstance(name, str) for name in self.arguments
        ):
            raise TypeError("an updated input is an object of arguments by name")
        _text("a reason", self.reason)


@dataclass(frozen=True, slots=True)
class PermissionResult:
    """A hint for the permission decision: deny and ask bind, allow and passthrough lift nothing.

    Attributes:
        behavior: allow, ask, deny or passthrough.
        message: why.
    """

    kind: ClassVar[str] = "permission_result"
    behavior: Behavior | str
    message: str = ""

    def __post_init__(self) -> None:
        # an unknown word must not become "no opinion": the hook fails, and a failing hook
        # blocks
        object.__setattr__(self, "behavior", Behavior(self.behavior))
        _text("a message", self.message)


@dataclass(frozen=True, slots=True)
class AdditionalContext:
    """Context for the conversation; it comes redacted, in the envelope's ``additional_context``.

    Attributes:
        text: what the model is given beside the result.
        source: where it is from.
    """

    kind: ClassVar[str] = "additional_context"
    text: str
    source: str = ""

    def __post_init__(self) -> None:
        _text("context", self.text)
        _text("a source", self.source)


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop: before the tool runs, the call ends ``hook_blocked``; after it, the envelope asks the
    agent to stop.

    Attributes:
        reason: why.
    """

    kind: ClassVar[str] = "stop"
    reason: str = ""

    def __post_init__(self) -> None:
        _text("a reason", self.reason)


@dataclass(frozen=True, slots=True)
class UpdatedOutput:
    """A replacement for what the tool returned; only for remote tools, or from a hook that owns the
    output.

    Attributes:
        value: the new value, mapped once more.
        reason: why, for the record.
    """

    kind: ClassVar[str] = "updated_output"
    value: Any = field(repr=False)
    reason: str = ""

    def __post_init__(self) -> None:
        _text("a reason", self.reason)


@dataclass(frozen=True, slots=True)
class Resources:
    """State of the application that the call is about, for rules: ``input.resources``, by name.

    From a pre_tool_use hook, which looks it up for the very arguments; a look-up that fails denies
    the call.

    Attributes:
        values: by name: JSON data, dataclasses, pydantic models. What has no whole JSON form is
          refused.
    """

    kind: ClassVar[str] = "resources"
    values: Mapping[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", whole_object("resources", self.values))


HookOutput = (
    Message
    | Progress
    | UpdatedInput
    | PermissionResult
    | AdditionalContext
    | Stop
    | UpdatedOutput
    | Resources
)
"""Any output."""

OUTPUT_TYPES = (
    Message,
    Progress,
    UpdatedInput,
    PermissionResult,
    AdditionalContext,
    Stop,
    UpdatedOutput,
    Resources,
)
"""The same, to test against."""
