"""The servers and the seeded run that all server tests look at; makes tools/ importable."""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import seeded
import servers_run

import servers


@dataclass
class World:
    """The seeded run, and the servers that received it."""

    run: seeded.Run
    stack: servers_run.Stack
    started: float

    def jaeger(self, **tags: str) -> list[dict[str, Any]]:
        """Search traces by span attributes through Jaeger's API; gives spans."""
        query = {"service": seeded.SERVICE, "limit": "1500", "lookback": "custom"}
        query["start"] = str(int((self.started - 60) * 1e6))
        query["end"] = str(int((time.time() + 60) * 1e6))
        if tags:
            query["tags"] = json.dumps(tags)
        answer = get_json(f"{self.stack.jaeger}/api/traces?{urllib.parse.urlencode(query)}")
        return [span for trace in answer["data"] for span in trace["spans"]]

    def found(self, **tags: str) -> Counter[str]:
        """Invocation ids that such a search finds."""
        return Counter(tag(span, "agenttool.invocation.id") for span in self.jaeger(**tags))

    def prometheus(self, path: str, **query: str) -> Any:
        """Ask Prometheus; gives the answer's data."""
        answer = get_json(f"{self.stack.prometheus}/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert answer["status"] == "success"
        return answer["data"]


def get_json(url: str) -> Any:
    """Get and parse."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def tag(span: dict[str, Any], name: str) -> Any:
    """Value of a Jaeger span's tag."""
    return next((item["value"] for item in span["tags"] if item["key"] == name), None)


@pytest.fixture(scope="session")
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
            time.sleep(2.5)  # two scrapes after the last export
            yield made
        finally:
            run.close()
