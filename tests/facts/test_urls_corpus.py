"""Every URL of the corpora gets the verdict that a policy reads off its fact."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.types import UrlFact
from agenttool_otel.readers.urls import url_fact

HERE = Path(__file__).parent
SHARED = (
    Path(os.environ.get("AGENTTOOL_CORPORA", HERE.parents[2] / "shared" / "corpora")) / "urls.jsonl"
)
OWN = HERE / "corpus" / "urls.jsonl"
ALLOWED_HOSTS = ("docs.python.org", "example.com")
WEB_PORTS = {80, 443, 8000, 8080, 8443}

ZONE = {
    "example.com": ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"],
    "docs.python.org": ["151.101.64.223"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "rebind.attacker.example": ["93.184.216.34", "127.0.0.1"],
    "inner.attacker.example": ["10.1.2.3"],
    "meta.attacker.example": ["169.254.169.254"],
    "six.attacker.example": ["64:ff9b::a9fe:a9fe"],
    "mapped.attacker.example": ["::ffff:10.0.0.1"],
    "zone.attacker.example": ["fe80::1%eth0"],
    "my_host.docs.python.org": ["151.101.64.223"],
    "fine.example.org": ["151.101.1.69"],
    "google.com.br": ["142.250.79.3"],
    "xn--mnchen-3ya.de": ["62.216.220.1"],
    "xn--r8jz45g.jp": ["117.104.133.165"],
}


def zone(host: str, port: int) -> Sequence[str]:
    if host not in ZONE:
        raise OSError("no such name")
    return ZONE[host]


def load(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def verdict(fact: UrlFact) -> str:
    """What the stock policy reads: nothing but fields of the fact."""
    if not fact["valid"] or fact["rejected"] or not fact["certain"]:
        return "deny"
    if fact["scheme"] not in {"http", "https"} or fact["port"] not in WEB_PORTS:
        return "deny"
    if fact["credentials"] or fact["disagreement"] or fact["lookalike"]:
        return "deny"
    if fact["address_class"] not in {"name", "public"}:
        return "deny"
    if any(entry["address_class"] != "public" for entry in fact["resolved"]):
        return "deny"
    return "allow_redacted" if fact["sensitive_query"] else "allow"


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["id"]) for row in load(SHARED) + load(OWN)]
)
def test_a_url_of_the_corpus_gets_its_verdict_by_its_text_alone(row: dict[str, Any]) -> None:
    fact = url_fact(
        row["input"], argument="/url", surroundings=FactEnvironment(allowed_hosts=ALLOWED_HOSTS)
    )
    if row.get("needs") == "dns":
        assert verdict(fact) == "allow", "the row is to show what only a resolver can tell"
    else:
        assert verdict(fact) == row["expected"], (row["why"], fact)
    json.dumps(fact).encode("utf-8")


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["id"]) for row in load(SHARED) + load(OWN)]
)
def test_a_url_of_the_corpus_gets_its_verdict_when_resolved(row: dict[str, Any]) -> None:
    env = FactEnvironment(allowed_hosts=ALLOWED_HOSTS, resolve_dns=True, resolver=zone)
    fact = url_fact(row["input"], argument="/url", surroundings=env)
    assert verdict(fact) == row["expected"], (row["why"], fact)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared corpora are not here")
def test_the_shared_corpus_was_really_read() -> None:
    assert len(load(SHARED)) >= 30
