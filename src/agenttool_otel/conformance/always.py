"""What has to hold in every scenario, whatever it is about: of what a subject returned, ran and recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from agenttool_otel.conformance.rules.journal import RESULT_STATES
from agenttool_otel.conformance.running import Observed
from agenttool_otel.conformance.schema_check import misfits_of
from agenttool_otel.names import SCHEMA_VERSION

Result: TypeAlias = Mapping[str, Any] | None
"""A tool_result; ``None`` for a call that waits."""

_MAY_HAVE_RUN: Final = RESULT_STATES - {"denied", "rejected"}
"""Result states of calls whose body may have run; a call that fails before its body has some, too."""

_BEFORE_THE_BODY: Final = frozenset(
    {
        "unknown_tool",
        "blocked_tool",
        "invalid_arguments",
        "schema_validation_failed",
        "schema_not_loaded",
        "permission_denied",
        "approval_rejected",
        "policy_blocked",
        "hook_blocked",
        "setup_required",
        "credential_missing",
    }
)
"""Error classes of calls whose body has not run."""

_RAN: Final = frozenset({"succeeded", "partial_succeeded"})
_CLOCK_S: Final = 2.0  # between two readings of one clock, rounded


def faults(observed: Observed) -> list[str]:
    """Return what is wrong in a run.

    Args:
        observed: what the subject returned, ran and recorded.
    """
    misfits = list(_misfits(observed))
    # what has another form than the standard's can't be compared
    if misfits:
        return misfits
    return [
        *_bodies_that_ran(observed),
        *_replies_without_record(observed),
        *_times(observed),
        *_versions(observed),
    ]


def _misfits(observed: Observed) -> Iterator[str]:
    """Whatever a subject returned fits the standard's schemas, as its records have to."""
    for declaration in observed.declared:
        yield from misfits_of("tool_declaration", declaration)
    for surface in observed.surfaces:
        yield from misfits_of("tool_surface", surface)
    for result in observed.results:
        if result is not None:
            yield from misfits_of("tool_result", result)


def _bodies_that_ran(observed: Observed) -> Iterator[str]:
    """As many bodies of a tool ran as it has calls that may have run, and no more."""
    for name in sorted(_names(observed)):
        results = _results_of(observed, name)
        began = _bodies_of(observed, name)
        most = sum(_may_have_run(result) for result in results)
        least = sum(_status(result) in _RAN for result in results)
        if began > most:
            yield f"{began} bodies of {name} ran, of {most} calls that may have run"
        if began < least:
            yield f"{began} bodies of {name} ran, although {least} calls succeeded"


def _names(observed: Observed) -> set[str]:
    names = {str(entry["tool"]) for entry in observed.ran}
    for tool in observed.setup.get("tools", ()):
        names.add(tool["name"])
    return names


def _bodies_of(observed: Observed, name: str) -> int:
    count = 0
    for entry in observed.ran:
        # the other entries are notes
        if entry["tool"] == name and "arguments" in entry:
            count += 1
    return count


def _results_of(observed: Observed, name: str) -> list[Result]:
    # a call may name an alias of the tool
    known = {name}
    for tool in observed.setup.get("tools", ()):
        if tool["name"] == name:
            known |= set(tool.get("aliases", ()))
    found: list[Result] = []
    for call, result in zip(observed.calls, observed.results, strict=True):
        if call["tool"] in known:
            found.append(result)
    return found


def _status(result: Result) -> str:
    if result is None:
        return ""
    return str(result.get("status"))


def _may_have_run(result: Result) -> bool:
    if result is None or _status(result) not in _MAY_HAVE_RUN:
        return False
    error = result.get("error") or {}
    return error.get("error_class") not in _BEFORE_THE_BODY


def _replies_without_record(observed: Observed) -> Iterator[str]:
    """What a caller got is what was recorded."""
    recorded = set()
    for line in observed.records:
        if line["object"] == "tool_result":
            recorded.add(_key(line["record"]))
    for call, result in zip(observed.calls, observed.results, strict=True):
        # a call that waits may have no record of a result
        if result is None or _status(result) not in RESULT_STATES:
            continue
        if result.get("invocation_id") != call["invocation_id"]:
            yield f"the result of {call['tool']} is that of another invocation"
        if _key(result) not in recorded:
            yield f"the result of {call['tool']} is no recorded tool_result"


def _key(result: Mapping[str, Any]) -> tuple[str, ...]:
    fields = ("invocation_id", "result_id", "status", "is_error")
    return tuple(str(result.get(field)) for field in fields)


def _times(observed: Observed) -> Iterator[str]:
    """No record is of another time than the scenario."""
    first = observed.began_at - _CLOCK_S
    last = observed.ended_at + _CLOCK_S
    for line in observed.records:
        for field, value in line["record"].items():
            if not _is_past(field) or value is None:
                continue
            at = _seconds(value)
            if at is None:
                yield f"{line['object']}.{field} is no time: {value}"
            elif not first <= at <= last:
                yield f"{line['object']}.{field} lies outside of the run: {value}"


def _is_past(field: str) -> bool:
    if field == "expires_at":
        return False
    return field.endswith("_at") or field in ("time", "timestamp")


def _seconds(value: Any) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError):
        return None


def _versions(observed: Observed) -> Iterator[str]:
    for line in observed.records:
        version = line["record"].get("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            yield f"a {line['object']} has schema_version {version}"
