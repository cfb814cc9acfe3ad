"""The servers and the seeded run that all server tests look at; makes tools/ importable."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import seeded
import servers_run
from world_of_servers import World

import servers


# of a module and not of the session: its reader exports every 400 ms as long as it is open
@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run 318 calls of every outcome into Collector, Jaeger and Prometheus."""
    folder = tmp_path_factory.mktemp("servers")
    for name in ("jaeger", "otelcol", "prometheus"):
        try:
            servers.path(name)
        except servers.ServerUnavailable as reason:
            pytest.skip(str(reason))
    with servers_run.stack(folder) as stack:
        started = time.time()
        run = seeded.Run(folder, stack.otlp_http)
        try:
            # what has happened once has no rate: the series have to exist before they grow
            run.health()
            run.make(seed=20_26, rounds=6, pause=1.2)
            run.health()
            run.flush()
            made = World(run, stack, started)
            deadline = time.monotonic() + 30
            while len(made.jaeger()) < len(run.planned) and time.monotonic() < deadline:
                time.sleep(0.2)
            # two scrapes after the last export, and on a busy machine as many as it takes to see
            # what is counted last
            deadline = time.monotonic() + 60
            time.sleep(2.5)
            while not made.last_counted() and time.monotonic() < deadline:
                time.sleep(0.5)
            made.ended = time.time()  # queries look from here, however long other tests take
            yield made
        finally:
            run.close()
