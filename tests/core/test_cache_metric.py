"""The metric of decision cache look-ups, over Governors that come and go."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agenttool_otel import Governor
from agenttool_otel.names import Label, Metric
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.telemetry.tallies import Tally, tally_for

FACTS: Any = {
    "read_only": True,
    "destructive": False,
    "open_world": False,
    "access_kinds": [],
    "write_effects": [],
}


def totals(reader: InMemoryMetricReader) -> dict[str, Any]:
    data: Any = reader.get_metrics_data()
    return {
        point.attributes[Label.CACHE_RESULT]: point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == Metric.CACHE_LOOKUPS
        for point in metric.data.data_points
    }


def used(provider: MeterProvider, calls: int) -> Governor:
    governor = Governor(telemetry=TelemetrySettings(meter_provider=provider), approvals="sqlite://")

    @governor.govern(**FACTS)
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    for _ in range(calls):
        double(1)
    return governor


@pytest.mark.slow
def test_look_ups_of_later_governors_count_and_keep_none_alive() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    first = used(provider, 5)
    assert totals(reader) == {"hit": 4, "miss": 1, "bypass": 0}
    second = used(provider, 3)
    assert totals(reader) == {"hit": 6, "miss": 2, "bypass": 0}
    gone = weakref.ref(first)
    first.close()
    del first
    gc.collect()
    assert gone() is None
    assert totals(reader) == {"hit": 6, "miss": 2, "bypass": 0}, "a total never falls"
    second.close()


def test_providers_are_counted_apart() -> None:
    readers = InMemoryMetricReader(), InMemoryMetricReader()
    governors = [
        used(MeterProvider(metric_readers=[reader]), calls)
        for reader, calls in zip(readers, (2, 4), strict=True)
    ]
    assert [totals(reader)["hit"] for reader in readers] == [1, 3]
    for governor in governors:
        governor.close()


@pytest.mark.slow
def test_governors_before_and_after_the_global_provider_count() -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from opentelemetry import metrics
from test_cache_metric import *
reader = InMemoryMetricReader()
provider = MeterProvider(metric_readers=[reader])
governors = [used(None, 2), used(None, 2)]
metrics.set_meter_provider(provider)
governors += [used(None, 2), used(provider, 2)]
print(totals(reader))
"""
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", script, folder], capture_output=True, text=True, timeout=120
    )
    assert "{'hit': 4, 'miss': 4, 'bypass': 0}" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_what_ended_between_collections_is_counted_in_full() -> None:
    class Owner:
        pass

    tally, owner, count = Tally(), Owner(), [1]
    tally.add(owner, lambda: [(count[0], {"result": "hit"})])
    options: Any = None
    assert [item.value for item in tally.observe(options)] == [1]
    count[0] = 7
    del owner
    gc.collect()
    assert [item.value for item in tally.observe(options)] == [7]
    count[0] = 9
    assert [item.value for item in tally.observe(options)] == [7]


def test_a_provider_without_weak_references_gets_its_own_tally() -> None:
    class Slotted(NoOpMeterProvider):
        __slots__ = ()
        __hash__ = None  # type: ignore[assignment]

    assert tally_for(Slotted()) is not tally_for(Slotted())
