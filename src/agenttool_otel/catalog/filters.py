"""What keeps a tool off a surface before any policy is asked, in the order in which it is looked at.

What nobody confirms counts as missing: a gate that nobody opens, a credential that nobody has, a
capability that the model is not declared to have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.names import BlockReason, ErrorClass, Lifecycle

Check = Callable[[str], bool] | Collection[str] | None
"""What is there: a function of a name, or the names."""

EXCLUDED: Final = frozenset(
    {
        BlockReason.ROLE_NOT_ALLOWED,
        BlockReason.RECURSIVE_TOOL_FORBIDDEN,
        BlockReason.FEATURE_DISABLED,
        BlockReason.MODEL_UNSUPPORTED,
    }
)
"""Reasons of tools that are left out rather than blocked (standard, "Tool Surface":
excluded_tools).
"""

_ERROR_CLASSES: Final[Mapping[BlockReason, ErrorClass]] = {
    BlockReason.SETUP_REQUIRED: ErrorClass.SETUP_REQUIRED,
    BlockReason.CREDENTIAL_MISSING: ErrorClass.CREDENTIAL_MISSING,
    BlockReason.MODEL_UNSUPPORTED: ErrorClass.CAPABILITY_GAP,
    BlockReason.DEFERRED_UNTIL_DISCOVERED: ErrorClass.SCHEMA_NOT_LOADED,
}
"""Classes of reasons that a caller can do something about; the others are ``blocked_tool``."""

_LIFECYCLES: Final[Mapping[str, BlockReason]] = {
    Lifecycle.DRAFT: BlockReason.FEATURE_DISABLED,
    Lifecycle.DISABLED: BlockReason.FEATURE_DISABLED,
    Lifecycle.RETIRED: BlockReason.FEATURE_DISABLED,
    Lifecycle.REQUIRES_SETUP: BlockReason.SETUP_REQUIRED,
}


class Hidden(NamedTuple):
    """A tool that is not on a surface.

    Attributes:
        tool_id: the tool.
        reason: one of the standard's words.
        detail: why, for people.
    """

    tool_id: str
    reason: BlockReason
    detail: str

    @property
    def error_class(self) -> ErrorClass:
        """Class of a call of the tool."""
        return _ERROR_CLASSES.get(self.reason, ErrorClass.BLOCKED_TOOL)


def not_loaded(name: str) -> str:
    """Return the message for a call of a tool whose schema is not loaded.

    Args:
        name: the tool's name.
    """
    return f"the tool's schema is not loaded: find it with a tool search for select:{name} first"


class Conditions:
    """What tools are compared with.

    Args:
        model: what the model supports, by name.
        requires: capabilities of which a tool has to have one.
        gates, credentials, setup: open gates, credentials that are there, and what has been set up.

    Attributes:
        key: distinguishes conditions.
    """

    def __init__(
        self,
        *,
        model: Mapping[str, Any] | None = None,
        requires: Collection[str] = (),
        gates: Check = None,
        credentials: Check = None,
        setup: Check = None,
    ) -> None:
        self.model = model
        self.requires = tuple(requires)
        self._checks = {"gate": gates, "credential": credentials, "setup": setup}
        self._asked: set[tuple[str, str]] = set()
        self.key = (repr(model), self.requires, *(_key(check) for check in self._checks.values()))

    def answers(self) -> frozenset[tuple[str, str, bool]]:
        """Return what is there now of all that was ever asked about."""
        found: set[tuple[str, str, bool]] = set()
        for kind, name in tuple(self._asked):
            found.add((kind, name, self._met(kind, name)))
        return frozenset(found)

    def hides(
        self, interface: Mapping[str, Any], agents: Collection[str], *, interactive: bool
    ) -> Hidden | None:
        """Return what keeps a tool off, with an empty id; ``None`` where nothing does.

        Args:
            interface: when the tool is shown, as its declaration states it.
            agents: the agents that run now, one inside the other.
            interactive: whether a person can answer.
        """
        lifecycle = str(interface.get("lifecycle"))
        if lifecycle in _LIFECYCLES:
            return Hidden("", _LIFECYCLES[lifecycle], f"the tool is {lifecycle}")
        for kind, member, reason in (
            ("gate", "feature_gate_refs", BlockReason.FEATURE_DISABLED),
            ("setup", "requires_setup", BlockReason.SETUP_REQUIRED),
            ("credential", "required_credentials", BlockReason.CREDENTIAL_MISSING),
        ):
            missing = [name for name in _names(interface, member) if not self._met(kind, name)]
            if missing:
                return Hidden("", reason, f"{kind} missing: {', '.join(missing)}")
        lacking = [
            name
            for name in _names(interface, "model_requirements")
            if not (self.model or {}).get(name)
        ]
        if lacking:
            return Hidden(
                "",
                BlockReason.MODEL_UNSUPPORTED,
                f"the model does not support {', '.join(lacking)}",
            )
        if interface.get("starts_agent") in agents:
            return Hidden(
                "", BlockReason.RECURSIVE_TOOL_FORBIDDEN, "the agent that it starts is running"
            )
        if interface.get("requires_user_interaction") and not interactive:
            return Hidden(
                "", BlockReason.FEATURE_DISABLED, "it needs a person, and nobody can answer here"
            )
        if self.requires and not interface.get("always_load"):
            offered = set(_names(interface, "capability_refs"))
            if offered.isdisjoint(self.requires):
                return Hidden(
                    "",
                    BlockReason.FEATURE_DISABLED,
                    f"it offers none of {', '.join(self.requires)}",
                )
        return None

    def _met(self, kind: str, name: str) -> bool:
        self._asked.add((kind, name))
        check = self._checks[kind]
        try:
            return check(name) is True if callable(check) else name in (check or ())
        except Exception:  # a check that fails counts as no
            return False


def _key(check: Check) -> Any:
    return check if check is None or callable(check) else tuple(sorted(check))


def _names(interface: Mapping[str, Any], member: str) -> list[str]:
    value = interface.get(member) or ()
    if isinstance(value, str):
        return [value]
    return [name for name in value if isinstance(name, str)]
