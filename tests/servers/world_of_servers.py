"""The seeded run and the servers that received it, as the tests see them."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass
from typing import Any

import seeded
import servers_run


@dataclass
class World:
    """The seeded run, and the servers that received it."""

    run: seeded.Run
    stack: servers_run.Stack
    started: float
    ended: float = 0.0

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
