"""What a rule reads of the input is found down to the members of elements, and nothing is missed."""

from __future__ import annotations

import copy
import os
import random
from typing import Any

import pytest

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.flows import EACH, HOLDS
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.reads import ReadSet
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.projection import projection
from agenttool_otel.policy.rego.syntax import parse_program
from agenttool_otel.policy.samples import sample_documents

DECISION = str(EntryPoint.DECISION)
PAIRS = int(os.environ.get("AGENTTOOL_TEST_PAIRS", "2000"))
"""Pairs of documents for each package of rules; docs/performance.md names those of the last long run."""

STOCK = load_bundle(default_bundle_path())
PROGRAM = parse_program(STOCK.modules)
CONCERNS = sorted(
    {rule.path[2] for rule in PROGRAM.rules if rule.path[:2] == ("agenttool", "rules")}
)
FINDINGS = ("clear", "deny", "ask")


def reads(rules: str, document: Any = None, **data: str) -> set[str]:
    """What is read, dotted; what is no name of a member begins with a tilde."""
    files = {"p.rego": f"package agenttool.permission\n\n{rules}\n".encode()}
    files.update((f"{name}.rego", text.encode()) for name, text in data.items())
    engine = EmbeddedEngine(bundle_from_files(files, origin="t"))
    proven = engine.reads(DECISION, document or {})
    assert proven is not None
    return {".".join(path).replace("\0", "~") for path in proven[1].paths}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            "decision := 1 if { some p in input.facts.paths; p.inside == true }",
            {"~keys", "~each.inside.~word"},
        ),
        (
            "decision := 1 if { every p in input.facts.paths { not p.inside } }",
            {"~keys", "~each.inside.~truth"},
        ),
        (
            "decision := 1 if inside(input.facts.paths[_])\ninside(p) if p.inside",
            {"~keys", "~each.inside.~truth"},
        ),
        (
            "decision := 1 if { some p in all; p.inside }\nall := array.concat(input.facts.paths, [])",
            {"~type", "~keys", "~each.inside.~truth"},
        ),
        (
            "decision := 1 if { some p in all; p.inside }\n"
            "all contains object.union(p, {}) if some p in input.facts.paths",
            {"~keys", "~each.~type", "~each.inside.~truth"},
        ),
        ("decision := input.facts.paths[0].raw", {"~at 0.raw"}),
        ("decision := 1 if input.facts.paths == []", {"~blank"}),
        ("decision := 1 if count(input.facts.paths) > 0", {"~blank"}),
        ("decision := count(input.facts.paths)", {"~count"}),
        (
            "decision := 1 if count({p.raw | some p in input.facts.paths}) > 0",
            {"~keys"},
        ),
        (
            "decision := count({p.raw | some p in input.facts.paths})",
            {"~keys", "~each.raw"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; p.raw in {"a", "b"} }',
            {"~keys", "~each.raw.~word"},
        ),
        (
            "decision := 1 if { some p in input.facts.paths; data.table[p.raw] }",
            {"~keys", "~each.raw.~word"},
        ),
        (
            "decision := 1 if { some p in input.facts.paths; p.raw == p.lexical }",
            {"~keys", "~each.raw", "~each.lexical"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; p.raw == concat("", ["a", "b"]) }',
            {"~keys", "~each.raw"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; startswith(p.raw, "/") }',
            {"~keys", "~each.raw.~begins /"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; endswith(p.raw, ".key") }',
            {"~keys", "~each.raw.~ends .key"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; contains(p.raw, "etc") }',
            {"~keys", "~each.raw.~holds etc"},
        ),
        (
            "decision := 1 if { some p in input.facts.paths; contains(p.raw, p.lexical) }",
            {"~keys", "~each.raw", "~each.lexical"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; contains("/etc", p.raw) }',
            {"~keys", "~each.raw"},
        ),
        (
            "decision := 1 if { some p in found; p.rule }\n"
            'found contains {"rule": "a", "path": p.raw} if some p in input.facts.paths',
            {"~keys"},
        ),
        (
            "decision := found\n"
            'found contains {"rule": "a", "path": p.raw} if some p in input.facts.paths',
            {"~keys", "~each.raw"},
        ),
        (
            'decision := 1 if { some p in input.facts.paths; split(p.raw, "/", x); p.lexical == x[0] }',
            {"~keys", "~each.raw", "~each.lexical"},
        ),
        (
            "decision := 1 if { some i; input.facts.paths[i].inside; data.y[i] }",
            {"~keys", "~each.inside.~truth"},
        ),
        (
            "decision := 1 if { some p in input.facts.paths; x = p.raw; x == data.y }",
            {"~keys", "~each.raw"},
        ),
        (
            "decision := 1 if { some p in input.facts.paths; f(p.raw, x); x == data.y }\nf(a) := a",
            {"~keys", "~each.raw"},
        ),
        (
            "decision := 1 if { [p] := input.facts.paths; p.inside }",
            {"~keys", "~each.inside.~truth"},
        ),
        (
            'decision := object.get(input.facts.paths[0], "raw", "")',
            {"~at 0.raw", "~at 0.~type"},
        ),
        ("decision := [p | some p in input.facts.paths]", {"~keys", "~each"}),
        (
            "decision := 1 if { some n; found[n].inner.raw }\n"
            "found[n].inner := p if some n, p in input.facts.paths",
            {"~keys", "~each.raw.~truth"},
        ),
        (
            "decision := 1 if { some n; some x in found[n]; x.raw }\n"
            "found[n] contains p if some n, p in input.facts.paths",
            {"~keys", "~each.raw.~truth"},
        ),
    ],
)
def test_reads_of_lists(rules: str, expected: set[str]) -> None:
    assert reads(rules, table="package table\n") == {
        f"facts.paths.{path}".rstrip(".") for path in expected
    }


def test_a_part_of_a_text_is_what_a_key_has_of_it() -> None:
    rules = 'decision := 1 if { some text in input.input; contains(text, "://") }'
    assert reads(rules) == {"input.~keys", "input.~each.~holds ://"}
    take = projection([("input", EACH, f"{HOLDS}://")], frozenset())
    values = ["a://b", "a://c", "a:/", "", "://", 7, None, ["://"], {"://": 1}]
    assert len({str(take({"input": {"q": value}})) for value in values}) == 6


def test_a_name_of_an_input_object_is_a_text_of_the_input() -> None:
    rules = (
        "decision := 1 if { some name, _ in input.facts.provenance\n"
        "some p in input.facts.paths; p.argument == name }"
    )
    assert "facts.paths.~each.argument" in reads(rules)


SORTED = """
decision := 1 if far
far if {
	some_outside
	some p in input.facts.paths
	regex.match("^/tmp", p.lexical)
}
some_outside if {
	some p in input.facts.paths
	not p.inside == true
}
"""


@pytest.mark.parametrize(("inside", "names"), [([], False), ([True], False), ([True, False], True)])
def test_a_guard_that_looks_at_flags_sorts_the_calls(inside: list[bool], names: bool) -> None:
    document = {"facts": {"paths": [{"inside": flag, "lexical": "/w"} for flag in inside]}}
    assert ("facts.paths.~each.lexical" in reads(SORTED, document)) is names


# --- the stock rules


@pytest.fixture(scope="module")
def stock() -> EmbeddedEngine:
    entry_points = [DECISION]
    for name in CONCERNS:
        entry_points += [f"data.agenttool.rules.{name}.{kind}" for kind in FINDINGS]
    defined = {rule.name for rule in PROGRAM.rules}
    return EmbeddedEngine(STOCK, entry_points=[one for one in entry_points if one in defined])


DOCUMENTS: list[Any] = list(sample_documents(PROGRAM, 300))
TEXTS = ["/elsewhere", "another text", "", "..", "rm", "//host", "https://host/x", "https://a b"]
PLACES = ["facts", "facts", "facts", "input", "session", "tool", "actor"]


def changed(document: Any, chance: random.Random, facts: str) -> Any:
    """A copy of a document, with another value somewhere, or in these facts."""
    document = copy.deepcopy(document)
    place = document["facts"][facts] if facts else document[chance.choice(PLACES)]
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return document
        key = chance.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.03:
            place[key] = another(place[key], chance)
            return document
        place = place[key]


def another(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return chance.choice([*TEXTS, value + "x"])
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return value[:-1]
    return chance.choice([None, "text"])


def differing(engine: EmbeddedEngine, entry: str, pairs: int, facts: str = "") -> int | None:
    """How many equal keys it takes to find two documents with different answers; else ``None``."""
    cache, chance, met = DecisionCache(), random.Random(pairs), 0
    while met < pairs:
        one = chance.choice(DOCUMENTS)
        key = cache.key(engine, entry, one)
        answer = engine.evaluate(entry, one, timeout=9).value
        for _ in range(40):
            other = changed(one, chance, facts)
            if cache.key(engine, entry, other) != key:
                continue
            met += 1
            if engine.evaluate(entry, other, timeout=9).value != answer:
                return met
    return None


def entries(name: str, engine: EmbeddedEngine) -> list[str]:
    known = engine._compiled.entry_points
    return [entry for entry in known if entry.startswith(f"data.agenttool.rules.{name}.")]


def test_documents_of_one_key_have_one_decision(stock: EmbeddedEngine) -> None:
    for entry in (EntryPoint.PERMITTED, EntryPoint.DECISION):
        assert differing(stock, entry, 300) is None


@pytest.mark.slow
@pytest.mark.parametrize("concern", CONCERNS)
def test_documents_of_one_key_have_the_same_findings(stock: EmbeddedEngine, concern: str) -> None:
    for entry in entries(concern, stock):
        assert differing(stock, entry, PAIRS // len(FINDINGS)) is None


@pytest.mark.parametrize(
    ("concern", "missing"),
    [
        ("paths", "facts.paths.~each.sensitive.~word"),
        ("paths", "facts.paths.~each.rejected.~type"),
        ("shell", "facts.shell.~each.runs_download.~word"),
        ("network", "facts.urls.~each.valid.~word"),
    ],
)
def test_a_read_set_that_lacks_one_member_is_found(
    stock: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, concern: str, missing: str
) -> None:
    path = tuple(missing.replace("~", "\0").split("."))
    proven = stock.reads
    lacking: list[bool] = []

    def reads(entry: str, document: Any) -> Any:
        generation, found = proven(entry, document)  # type: ignore[misc]
        lacking.append(path in found.typed)
        rest = tuple(each for each in found.typed if each != path)
        return generation, ReadSet(rest, found.arguments, found.words)

    monkeypatch.setattr(stock, "reads", reads)
    facts = path[1]
    assert any(differing(stock, entry, 3000, facts) for entry in entries(concern, stock))
    assert any(lacking)
