"""Every engine at hand gives the same answer as a real OPA, on every policy and input; one
difference fails.

The corpus: policies made to reach every corner that the engines have been seen to differ in, and
the stock bundle; inputs written by hand, and inputs that hypothesis makes from the input model. The
corners in which the embedded engine is known to print or fold text differently are in the table of
docs/engines.md, not here. An error or an undefined result counts as an answer, the same for all
engines: no decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from opa_program import OpaServer, opa_server
from policy_inputs import documents, make_document
from undefined_values import UNDEFINED

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.bundle_files import bundle_files, write_archive
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.engines.opa_server import OpaServerEngine

pytestmark = pytest.mark.opa

DECISION = "data.agenttool.permission.decision"

POLICIES: dict[str, str] = {
    "sets": """
decision := {"denied": denied, "count": count(denied), "union": denied | {"x"}, "both": denied & {"a", "k"}}

denied contains path.raw if {
	some path in input.facts.paths
	not path.inside
}

denied contains role if some role in input.actor.roles
""",
    "strings": """
decision := {
	"lower": lower(input.tool.name),
	"parts": split(input.tool.namespace, "."),
	"joined": concat("/", sort(input.actor.roles)),
	"text": sprintf("%s-%d-%v", [input.tool.name, input.session.counters.calls, input.tool.read_only]),
	"trimmed": trim_prefix(input.tool.namespace, "local."),
	"starts": startswith(input.actor.id, "agent:"),
}
""",
    "globs": """
decision := {pattern |
	some pattern in ["*", "read_*", "*_all", "local.*", "{read,fetch}*", "**", "?h", "x.*"]
	glob.match(pattern, ["."], input.tool.name)
}
""",
    "regexes": """
decision := {pattern |
	some pattern in [`^[a-z_]+$`, `(?i)READ`, `a.c`, `^$`, `\\bx\\b`, `[^a-z]`, `(a|b)+`]
	regex.match(pattern, input.tool.name)
}
""",
    "numbers": """
decision := {
	"sum": sum([input.session.counters.calls, input.session.counters.asks]),
	"left": 100 - input.session.counters.calls,
	"more": input.session.counters.calls > input.session.counters.asks,
	"rounded": round(input.session.counters.calls / 4),
	"rest": input.session.counters.result_bytes % 7,
}
""",
    "orders": """
decision := [input.tool.name < input.tool.kind, sort([input.actor.tenant, input.tool.read_only, input.session.roots,
	input.session.counters, input.session.counters.calls, input.tool.name]), [1, "a"] < [1, null]]
""",
    "every": """
default decision := "no"

decision := "yes" if {
	every path in input.facts.paths {
		path.inside
		not path.sensitive
	}
}
""",
    "elses": """
decision := "a" if {
	input.tool.destructive
} else := "b" if {
	input.permission_profile.risk_level in {"high", "critical"}
} else := "c"
""",
    "objects": """
decision := {
	"labels": {key: upper(value) | some key, value in input.session.labels; regex.match(`^[ -~]*$`, value)},
	"get": object.get(input.session.labels, "k", "none"),
	"merged": object.union({"a": 1}, input.session.labels),
	"keys": object.keys(input.session.labels),
	"untrusted": {pointer | some pointer, fact in input.facts.provenance; fact.untrusted},
}
""",
    "arguments": """
decision := {"whole": input.input, "path": object.get(input.input, "path", null),
	"names": {name | some name, _ in input.input}}
""",
    "functions": """
decision := {kind: rank(kind) | some kind in input.permission_profile.access_kinds}

rank(kind) := 3 if kind == "payment"

rank(kind) := 2 if kind in {"network", "external_send"}

rank(kind) := 1 if not kind in {"payment", "network", "external_send"}
""",
    "absent": """
decision := {
	"approval": [status | status := input.approval.status],
	"none": [1 | not input.approval.status],
	"null": input.approval == null,
	"deep": [x | x := input.input.a.b.c],
}
""",
    "errors": """
default decision := "allow"

decision := "deny" if to_number(input.tool.name) > 3
""",
    "type errors": """
default decision := "allow"

decision := "deny" if startswith(input.input.path, "/etc")
""",
    "division": """
decision := 10 / input.session.counters.asks
""",
    "conflicts": """
decision := "one" if input.tool.read_only

decision := "two" if input.tool.destructive
""",
    "undefined": """
decision := input.evaluation.next_step if input.evaluation.status == "pass"
""",
    "hosts": """
decision := [fact.host |
	some fact in input.facts.urls
	not fact.address_class in {"loopback", "private", "metadata"}
	not endswith(fact.host, ".example.com")
]
""",
    "networks": """
decision := [net.cidr_contains("10.0.0.0/8", "10.1.2.3"), net.cidr_contains("fd00::/8", "fe80::1"),
	net.cidr_is_valid(input.tool.name)]
""",
    "json": """
decision := [json.unmarshal(json.marshal(input.session.counters)),
	base64.encode(input.tool.name),
	urlquery.encode(input.tool.name)]
""",
    "times": """
decision := time.parse_rfc3339_ns(input.time)
""",
    "with": """
decision := [then, restricted] if {
	then := restricted with input.tool.destructive as true
}

default restricted := false

restricted if input.tool.destructive
""",
}  # fmt: skip

INPUTS: list[Any] = [
    make_document(),
    make_document({"input": {"path": "/etc/passwd"}}),
    make_document({"input": {"path": 3}}),
    make_document({"input": {"path": ["/etc"]}}),
    make_document({"input": {"a": {"b": {"c": [1, {"d": None}]}}}}),
    make_document({"tool.name": "12"}),
    make_document({"tool.name": "ÉCOLE ß"}),
    make_document({"tool.destructive": True}),
    make_document({"session.counters.asks": 3, "session.counters.calls": 2**40}),
    make_document({"session.labels": {"k": "v", "é": "ü"}, "actor.roles": ["b", "a", "a"]}),
    make_document({"permission_profile.access_kinds": ["payment", "network", "file_read"]}),
    make_document(evaluation={"status": "pass", "trend": "stable", "next_step": "go"}),
]


def answer(engine: Any, document: Any) -> Any:
    """The engine's value in canonical text, or that it has none."""
    try:
        value = engine.evaluate(DECISION, document, timeout=20).value
    except PolicyEvaluationError:
        return "no decision"
    if isinstance(value, float):
        # 10 / 131073: OPA's quotient is 7.629336324033172e-05, that of IEEE 754 ends with a 3
        return f"{value:.15g}"
    return json.dumps(value, sort_keys=True)


class Comparison:
    """Engines by name with their bundle; the first is the reference."""

    def __init__(self) -> None:
        self.decisions = 0
        self.engines: dict[str, int] = {}
        self.differences: list[str] = []

    def compare(self, label: str, engines: dict[str, Any], document: Any) -> None:
        self.decisions += 1
        answers = {name: answer(engine, document) for name, engine in engines.items()}
        reference = next(iter(answers.values()))
        for name, value in answers.items():
            self.engines[name] = self.engines.get(name, 0) + 1
            if value != reference:
                self.differences.append(
                    f"{label}: {name} says {value}, OPA says {reference}: {json.dumps(document)}"
                )

    def report(self) -> str:
        engines = ", ".join(f"{name} ({count})" for name, count in sorted(self.engines.items()))
        return f"differential: {self.decisions} decisions compared on {engines}: {len(self.differences)} differences"


class Engines:
    """Makes the engines for one bundle after another, on one running OPA for each bundle."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: list[tuple[OpaServerEngine, Any]] = []

    def of(self, bundle: Bundle) -> dict[str, Any]:
        path = self.folder / f"{len(self.servers)}.tar.gz"
        path.write_bytes(write_archive(bundle_files(bundle)))
        context = opa_server("-b", str(path))
        server: OpaServer = context.__enter__()
        engine = OpaServerEngine(server.url)
        self.servers.append((engine, context))
        return {"opa_server": engine, "embedded": EmbeddedEngine(bundle, fast=False)}

    def close(self) -> None:
        for engine, context in self.servers:
            engine.close()
            context.__exit__(None, None, None)


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    made = Engines(tmp_path)
    yield made
    made.close()


def corpus(policies: dict[str, str]) -> Bundle:
    """All policies as one bundle: one package for each, one decision that holds what
    ``input.tool.kind`` names.
    """
    files = {
        f"{number}.rego": f"package corpus.p{number}\n{text}"
        for number, text in enumerate(policies.values())
    }
    return bundle_from_files({name: text.encode() for name, text in files.items()}, origin="corpus")


def generated(strategy: Any, count: int) -> list[Any]:
    """Documents that hypothesis makes, the same ones each time."""
    made: list[Any] = []

    @seed(20261121)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(document: Any) -> None:
        made.append(document)

    collect()
    return made


def run(
    engines: Engines, *, wrong: Any = None, count: int = 6, policies: dict[str, str] = POLICIES
) -> Comparison:
    comparison = Comparison()
    inputs = [*INPUTS, *generated(documents(), count)]
    bundle = corpus(policies)
    stock = load_bundle(default_bundle_path())
    merged = bundle_from_files(
        {**{f"corpus/{path}": text.encode() for path, text in bundle.modules.items()}, **bundle_files(stock),
         ".manifest": b"{}"},
        origin="corpus",
    )  # fmt: skip
    entries = {f"data.corpus.p{number}.decision": name for number, name in enumerate(policies)}
    made = engines.of(merged)
    if wrong is not None:
        made["wrong"] = wrong(made["embedded"])
    for entry, label in {**entries, DECISION: "stock bundle"}.items():
        at: dict[str, Any] = {name: _At(engine, entry) for name, engine in made.items()}
        compiled = EmbeddedEngine(merged, entry_points=[entry])
        if not compiled.interpreted_because:
            at["embedded_compiled"] = _At(compiled, entry)
        for document in inputs:
            comparison.compare(label, at, document)
    return comparison


class _At:
    """An engine that is always asked for one entry point."""

    def __init__(self, engine: Any, entry: str) -> None:
        self.engine, self.entry = engine, entry

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
        return self.engine.evaluate(self.entry, document, timeout=timeout)


@pytest.mark.slow
def test_all_engines_agree_with_opa(engines: Engines, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = run(engines)
    with capsys.disabled():
        print(f"\n{comparison.report()}")
    assert comparison.differences == []
    assert comparison.decisions > 350
    assert comparison.engines["embedded_compiled"] > comparison.decisions / 2


@pytest.mark.slow
def test_what_is_undefined_is_what_it_is_in_opa(engines: Engines) -> None:
    # one engine for each of them is made, so a few inputs do; `_` in a rule of its own has no
    # package
    comparison = run(
        engines, count=2, policies={rules: rules for rules in UNDEFINED if "x.q[_]" not in rules}
    )
    assert comparison.differences == []
    # one of them stops the compiled form for every input, and so has none
    assert comparison.engines["embedded_compiled"] > comparison.decisions * 0.95


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_engines_agree_with_opa_on_many_more_inputs(
    engines: Engines, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = run(engines, count=600)
    with capsys.disabled():
        print(f"\n{comparison.report()}")
    assert comparison.differences == []


@pytest.mark.slow
def test_a_wrong_engine_is_noticed(engines: Engines) -> None:
    """One that errs in one corner only: it takes an error in a rule for "the rule does not
    apply".
    """

    class Lenient:
        def __init__(self, engine: Any) -> None:
            self.engine = engine

        def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
            try:
                return self.engine.evaluate(entry_point, document, timeout=timeout)
            except PolicyEvaluationError:
                empty = make_document(
                    {"tool.name": "0", "input": {"path": ""}, "session.counters.asks": 1}
                )
                return self.engine.evaluate(entry_point, empty, timeout=timeout)

    few = {name: POLICIES[name] for name in ("strings", "type errors", "division")}
    comparison = run(engines, wrong=Lenient, count=2, policies=few)
    assert comparison.differences
    assert all("wrong says" in item for item in comparison.differences)
