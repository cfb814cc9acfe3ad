"""Keep the records of calls, and check that what holds of all records holds of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agenttool_otel.conformance.invariants import Violation, find_violations
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import Build, Sink


class KeptRecords(Sink):
    """A sink that keeps records in memory, and builds them when they are looked at.

    It has no thread and loses nothing: ``TelemetrySettings(sinks=(KeptRecords(),))``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: list[JsonObject] = []
        self._waiting: list[Build] = []

    def put(self, build: Build) -> None:
        """Keep what makes some records."""
        self._waiting.append(build)

    @property
    def lines(self) -> list[JsonObject]:
        """The records so far, oldest first, each with ``producer``, ``sequence``, ``time``,
        ``object`` and ``record``.
        """
        waiting, self._waiting = self._waiting, []
        self._made += self.lines_of(self.entries_of(list(waiting)))
        return list(self._made)


def check_records(
    records: Iterable[Mapping[str, Any]],
    *,
    ran: Iterable[str] | None = None,
    canaries: Sequence[str] = (),
    spans: Iterable[Any] = (),
    ignore: Collection[str] = (),
) -> None:
    """Fail where records show what must not be so, whatever the calls did.

    A call that ended has one terminal event and one terminal result, equal in status; nothing ran
    that was denied, rejected, invalid or blocked; references resolve, times and states are in
    order, no number is missing, and what is inline fits its limit. The rules, by their ids, are in
    ``agenttool_otel.conformance.invariants``.

    Args:
        records: what a sink got, oldest first, and all of it: the lines of a JsonlSink's file, each
            read as JSON; ``Capture.records``; or each record as ``{"object": the standard's name of
            it, "record": it}``.
        ran: ids of the calls whose body ran, invocation ids or native call ids, as the bodies noted
            them: ``current_call().invocation_id``. Without it, what records show is looked at.
        canaries: texts that were in arguments or results, and must be in no record and no span.
        spans: spans of the OpenTelemetry SDK, or JSON data, in which canaries are looked for, too.
        ignore: parts of violations that are no failure: ids of rules, as ``order.progress``, or
            more of the text, as ``order.progress: percent``.

    Raises:
        AssertionError: the records break rules; its message has one line for each violation.
    """
    found = []
    for violation in find_violations(records, ran=ran or (), canaries=canaries, spans=spans):
        if not is_ignored(violation, ignore):
            found.append(str(violation))
    if found:
        raise AssertionError("\n".join([f"{len(found)} violations in the records:", *found]))


def is_ignored(violation: Violation, ignore: Iterable[str]) -> bool:
    """Whether one of these texts is part of a violation's."""
    text = str(violation)
    return any(part in text for part in ignore)
