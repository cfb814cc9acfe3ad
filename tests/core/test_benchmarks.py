"""The benchmarks can be run: `make bench` is no test, so a part that breaks is seen here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from benchmarks.__main__ import PARTS
from benchmarks.call_path import CONTEXT, FACTS, small
from benchmarks.reference import HISTOGRAMS, Lookup, Same

from agenttool_otel import ToolDenied, agent_context
from agenttool_otel.names import Metric
from agenttool_otel.redaction import ids
from agenttool_otel.telemetry.telemetry import Telemetry
from agenttool_otel.testing import Capture, StaticEngine, capture

NAMES_OF_METRICS = [value for name, value in vars(Metric).items() if name.isupper()]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_each_row_of_a_part_can_be_run(part: str) -> None:
    for _, run in importlib.import_module(f"benchmarks.{part}").rows():
        run()


@dataclass
class Recorded:
    """What a governed call recorded whose decision was cached, and what the reference did."""

    governed: Capture
    reference: Capture
    counted: list[str]


def named(points: Capture, name: str) -> list[dict[str, Any]]:
    return [dict(point.attributes) for point in points.points(name)]


def reference_of(captured: Capture) -> tuple[Any, Any]:
    settings = captured.governor.telemetry.settings
    return settings.tracer_provider, settings.meter_provider


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    counted: list[str] = []
    # other tests of this process may have used up the names that are labels
    agent_names = pytest.MonkeyPatch()
    agent_names.setattr(ids, "_names", set())
    with capture() as governed, capture() as reference, agent_context(**CONTEXT):
        call = governed.governor.govern(small, **FACTS)
        call("q")
        governed.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Telemetry, "count", lambda *given: counted.append(str(given)))
            call("q")
        Lookup(small, *reference_of(reference))("q")
        yield Recorded(governed, reference, counted)
    agent_names.undo()


def kinds_of_values(attributes: Mapping[str, Any] | None) -> dict[str, type]:
    return {name: type(value) for name, value in (attributes or {}).items()}


def test_the_reference_has_each_attribute_of_a_call(recorded: Recorded) -> None:
    ours, reference = recorded.governed.span, recorded.reference.span
    assert kinds_of_values(reference.attributes) == kinds_of_values(ours.attributes)


def test_the_reference_has_each_event_of_a_call(recorded: Recorded) -> None:
    ours, reference = recorded.governed.span, recorded.reference.span
    assert [(event.name, event.attributes) for event in reference.events] == [
        (event.name, event.attributes) for event in ours.events
    ]


def test_the_reference_measures_what_a_call_measures(recorded: Recorded) -> None:
    measured = {
        name
        for name in NAMES_OF_METRICS
        for point in recorded.governed.points(name)
        if getattr(point, "count", 0) == 2  # both calls: the cached one measured it, too
    }
    assert measured == set(HISTOGRAMS)


def test_the_reference_has_the_labels_of_a_call(recorded: Recorded) -> None:
    for name in HISTOGRAMS:
        assert named(recorded.reference, name) == named(recorded.governed, name)


def test_a_call_adds_to_no_counter_itself(recorded: Recorded) -> None:
    assert not recorded.counted


def test_a_denied_call_is_recorded_the_same_by_hand() -> None:
    with capture(policy=StaticEngine("deny")) as governed, capture() as reference:
        with pytest.raises(ToolDenied):
            governed.governor.govern(small, **FACTS)("q")
        Same(governed, *reference_of(reference))(lambda: None)
        ours, hand = governed.span, reference.span
        assert (hand.attributes, hand.status.description) == (ours.attributes, "permission_denied")
