"""What the options of a Governor may be: another type is refused when the Governor is made.

At the first call it would be a denial whose reason nobody finds: ``Governor(approvals=[approver])``
denied the first call that was asked about, with "internal error: AttributeError".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.classified import IntentCheck
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.redaction import Redactor
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.telemetry.sinks import Sink


def _has(*names: str) -> Callable[[Any], bool]:
    """Return what checks for methods: engines and stores may be of any class that has them."""

    def check(value: Any) -> bool:
        # Governor(policy=EmbeddedEngine): a class has the methods, and no engine
        if isinstance(value, type):
            return False
        return all(callable(getattr(value, name, None)) for name in names)

    return check


_is_engine = _has("evaluate")
_is_store = _has("by_invocation")


def _is_list(value: Any, is_item: Callable[[Any], bool]) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(is_item(item) for item in value)


def _is_policy(value: Any) -> bool:
    if isinstance(value, str | Path | Bundle) or _is_engine(value):
        return True
    return _is_list(value, _is_engine)


def _is_approvals(value: Any) -> bool:
    return isinstance(value, str | Path) or _is_store(value)


def _are_engines(value: Any) -> bool:
    return _is_list(value, _is_engine)


def _are_texts(value: Any) -> bool:
    return _is_list(value, lambda item: isinstance(item, str))


def _of(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "policy": (_is_policy, "a path, a Bundle, an engine or a list of engines"),
    "policy_data": (_of(Mapping), "a mapping"),
    "extension": (_of(str, Path), "the path of a bundle"),
    "settings": (_of(Settings), "a Settings"),
    "approvals": (_is_approvals, "an ApprovalStore or its URL (who is asked is the approver)"),
    "results": (_of(ResultKeeper), "a ResultKeeper"),
    "redactor": (_of(Redactor), "a Redactor"),
    "telemetry": (_of(TelemetrySettings), "a TelemetrySettings"),
    "errors": (_of(Mapping), "a mapping of exceptions"),
    "shadow_engines": (_are_engines, "a list of engines"),
    "intent_check": (_of(IntentCheck), "an IntentCheck"),
    "shadow_packages": (_are_texts, "a list of the names of packages"),
}

_LISTENERS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "sinks": (_of(Sink), "sinks"),
    "subscribers": (callable, "functions"),
    "progress": (callable, "functions"),
}


def check_option_types(**options: Any) -> None:
    """Refuse an option that is none of what it may be.

    Args:
        options: the options of a Governor by name; ``None`` is what was not given.

    Raises:
        ConfigurationError: an option has another type.
    """
    for name, value in options.items():
        if value is None:
            continue
        fits, wanted = _TYPES[name]
        if not fits(value):
            raise ConfigurationError(f"{name} is {wanted}, not {_name_of(value)}")
    telemetry = options.get("telemetry")
    if telemetry is not None:
        _check_listeners(telemetry)


def _check_listeners(telemetry: TelemetrySettings) -> None:
    for name, (fits, wanted) in _LISTENERS.items():
        given = getattr(telemetry, name)
        # TelemetrySettings(sinks=JsonlSink(...)): the comma of a tuple of one is easily forgotten
        if not _is_list(given, fits):
            raise ConfigurationError(f"{name} is a list of {wanted}, not {_name_of(given)}")


def _name_of(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, list | tuple) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return type(value).__name__
