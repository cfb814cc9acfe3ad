"""Runtime: what one call needs of its Governor, and the one that is the default.

``Governor`` builds it and adds the verbs that people use; everything below takes the Runtime and
imports no Governor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.service import Approvals
from agenttool_otel.call.services import LayerPlace
from agenttool_otel.catalog import Registry
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import SessionBook
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.hooks import Hooks
from agenttool_otel.names import PermissionChannel, PolicyMode
from agenttool_otel.redaction import Redactor
from agenttool_otel.results.errors.mapper import ErrorMapper
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.telemetry import Telemetry
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:  # a program that only imports the package pays for neither
    from agenttool_otel.call.phases.pipeline import Pipeline
    from agenttool_otel.policy.decider import Decider

_AFTER_ANSWER = 3600.0
"""Seconds that a layer is kept after the last moment in which its question can be answered."""

DEFAULT_TOOLS: Registry[Any] = Registry()
"""The tools that the default Governor is in charge of, whichever Governor that is when they are
called.
"""


@dataclass(eq=False)
class Runtime:
    """One configuration, put together: what every call of its tools is decided, recorded and
    delivered with.
    """

    settings: Settings
    registry: Registry[Any]  # the tools governed with it, as GovernedTool
    redactor: Redactor
    telemetry: Telemetry
    sessions: SessionBook
    decider: Decider
    approvals: Approvals
    results: ResultKeeper
    errors: ErrorMapper
    hooks: Hooks | None
    # fills what a context leaves open with the settings' defaults
    effective: Callable[[AgentContext], AgentContext]
    pipeline: Pipeline = field(init=False)  # made of the others

    @property
    def registries(self) -> tuple[Registry[Any], ...]:
        """Where the tools are that this Governor is in charge of."""
        return (self.registry, DEFAULT_TOOLS) if self is _default else (self.registry,)

    def tool_added(self, spec: ToolSpec) -> None:
        """Look at a tool that was just governed.

        Args:
            spec: the tool.
        """

    @property
    def layers(self) -> LayerPlace:
        """Where the layers of rehearsed calls are; each is there for as long as its question is."""
        settings = self.settings
        return LayerPlace(settings.rehearsals_dir, settings.approvals_ttl + _AFTER_ANSWER)

    @property
    def permission_channel(self) -> PermissionChannel:
        """Through whom a question of the policy is answered."""
        if self.settings.policy_mode == PolicyMode.SHADOW:
            return PermissionChannel.NONE
        return self.approvals.channel

    @property
    def tools(self) -> list[Any]:
        """The tools this Governor is in charge of, as GovernedTool."""
        return [tool for registry in self.registries for tool in registry]

    def find(self, name: str) -> Any:
        """Return a tool of this Governor as GovernedTool, or ``None``.

        Args:
            name: id, name or alias of the tool.
        """
        return self.registry.resolve(name) or (
            DEFAULT_TOOLS.resolve(name) if self is _default else None
        )

    def clean(self, text: str) -> str:
        """Redact a text: an exception's message, a hook's, an approver's.

        Args:
            text: any text.
        """
        value = self.redactor.redact_text(text).value
        return value if isinstance(value, str) else ""


_lock = new_lock()
_default: Runtime | None = None
_configured = False
_build: Callable[[], Runtime] | None = None


def build_default_with(build: Callable[[], Runtime]) -> None:
    """Register how the default Governor is built, so that nothing down here has to import it."""
    global _build
    _build = build


def default_runtime() -> Runtime:
    """Return the default Governor as a Runtime, built at first use from the environment."""
    global _default
    if _default is None:
        with _lock:
            if _default is None:
                if _build is None:
                    raise ConfigurationError("the package is not imported as a whole")
                _default = _build()
                _state_default_channel()
    return _default


def replace_default(runtime: Runtime | None, *, configured: bool = True) -> Runtime | None:
    """Put another one in charge and return the one that was.

    Args:
        runtime: the new one; ``None`` means to build anew at next use.
        configured: whether the program chose it.
    """
    global _default, _configured
    with _lock:
        old, _default = _default, runtime
        _configured = configured and runtime is not None
        _state_default_channel()
    return old


def state_channel(spec: ToolSpec, governor: Runtime | None) -> None:
    """State on a tool's records who answers for its Governor.

    Who answers is the Governor's and no fact of the tool, so it is in no digest: a call that was
    paused by a process without an approver goes on in one that has one.

    Args:
        spec: the tool.
        governor: its Governor; ``None`` for the default one, which states it once there is one.
    """
    runtime = _default if governor is None else governor
    if runtime is not None:
        spec.state_channel(runtime.permission_channel.value)


def _state_default_channel() -> None:
    for tool in DEFAULT_TOOLS:
        state_channel(tool.spec, None)


def default_is_configured() -> bool:
    """Return whether the program chose the default Governor itself, instead of leaving it to the
    environment.
    """
    return _configured
