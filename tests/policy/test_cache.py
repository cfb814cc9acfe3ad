"""The decision cache tries to lie here and must not manage to."""

from __future__ import annotations

import copy
import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_inputs import documents, make_document

from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.policy.bundles.bundle import bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.check import entry_path, load_program
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.reads import ReadSet, read_set
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

DECISION = str(EntryPoint.DECISION)


def engine(rules: str, **more: str) -> EmbeddedEngine:
    files = {"p.rego": f"package agenttool.permission\n\n{rules}\n".encode()}
    files.update((f"{name}.rego", text.encode()) for name, text in more.items())
    return EmbeddedEngine(bundle_from_files(files, origin="t"))


def paths(rules: str, **more: str) -> set[str] | None:
    """Paths that the analysis finds, dotted, or None; what is no name begins with a tilde."""
    proven = engine(rules, **more).reads(DECISION, {})
    if proven is None:
        return None
    return {".".join(path).replace("\0", "~") for path in proven[1].paths}


class TestReads:
    """What a policy can read is found through every way that Rego has, or nothing is claimed."""

    @pytest.mark.parametrize(
        ("rules", "expected"),
        [
            ("decision := input.tool.id", {"tool.id"}),
            ('decision := input["tool"]["id"]', {"tool.id"}),
            ("decision := input.tool", {"tool"}),
            ("decision := [input.tool.id, input.tool]", {"tool"}),
            ("decision := input.tool[input.actor.id]", {"tool.~keys", "tool.~each", "actor.id"}),
            (
                "decision := [x | some x in input.actor.roles]",
                {"actor.roles.~keys", "actor.roles.~each"},
            ),
            (
                "decision := [x.raw | x := input.facts.paths[_]]",
                {"facts.paths.~keys", "facts.paths.~each.raw"},
            ),
            ("decision := f(input.session)\nf(s) := s.mode", {"session.mode"}),
            ("decision := a\na := b\nb if input.hooks", {"hooks.~truth"}),
            ("decision := 1 if not input.tool.destructive", {"tool.destructive.~truth"}),
            (
                "decision := 1 if every x in input.hooks { x.behavior == input.actor.kind }",
                {"hooks.~keys", "hooks.~each.behavior", "actor.kind"},
            ),
            ("decision := {input.tool.id: input.tool.kind}", {"tool.id", "tool.kind"}),
            (
                "decision := 1 if input.tool.id == `x` else := input.tool.kind",
                {"tool.id.~word", "tool.kind"},
            ),
            (
                "decision contains input.tool.id if input.tool.read_only",
                {"tool.id", "tool.read_only.~truth"},
            ),
            ("decision[k] := input.tool.name if k := input.tool.kind", {"tool.name", "tool.kind"}),
            (
                "default decision := 1\ndecision := 2 if input.tool.read_only",
                {"tool.read_only.~truth"},
            ),
            ("unused := input.session\ndecision := input.tool.id", {"tool.id"}),
            ("decision := data.lists[input.tool.id]", {"tool.id.~word"}),
            ("decision := object.keys(input.input)", {"input.~keys"}),
            ('decision := 1 if input.actor.id != ""', {"actor.id.~blank"}),
            ('decision := 1 if input.actor.id < ""', {"actor.id"}),
            ('decision := 1 if input.actor.id != "a"', {"actor.id.~word"}),
            ("decision := 1 if is_string(input.session.id)", {"session.id.~type"}),
            ("decision := [is_string(input.actor.id), input.actor.id]", {"actor.id"}),
            (
                "decision := [is_string(input.actor[k]) | some k in input.actor.roles]",
                {"actor.~keys", "actor.~each.~type", "actor.roles.~keys", "actor.roles.~each"},
            ),
            ("decision := is_string(lower(input.actor.id))", {"actor.id"}),
            ("decision := count(input.actor.id)", {"actor.id.~count"}),
            # nothing is claimed for these
            ("decision := input", None),
            ("decision := x if x := input", None),
            ("decision := input[k] if k := input.tool.id", None),
            ("decision := count(input)", None),
            ("decision := input.time", None),
            ("decision := input.invocation", None),
            ("decision := input.invocation.id", None),
            ("decision := 1 if input.invocation.native_call_id", None),
            ("decision := time.now_ns()", None),
            ("decision := rand.intn(`a`, 3)", None),
            ("decision := uuid.rfc4122(`a`)", None),
            ("decision := 1 if a with input.tool as {}\na if input.tool.id", None),
            ("decision := a\na := b\nb := time.now_ns()", None),
            # a reference that can reach every rule reads what all of them read
            ("decision := data.lib[input.tool.id]", None),
        ],
    )
    def test_paths(self, rules: str, expected: set[str] | None) -> None:
        assert (
            paths(rules, lib="package lib\n\nnow := time.now_ns()\n\nraw := input.input\n")
            == expected
        )

    def test_imports(self) -> None:
        files = {
            "p.rego": b"package agenttool.permission\n\nimport input.tool as t\nimport data.lib\n"
            b"import data.lib.raw\n\ndecision := [t.id, lib.helper(1), raw]\n",
            "lib.rego": b"package lib\n\nhelper(_) := input.actor.kind\n\nraw := input.input\n",
        }
        proven = EmbeddedEngine(bundle_from_files(files, origin="t")).reads(DECISION, {})
        assert proven is not None
        assert set(proven[1].paths) == {("tool", "id"), ("actor", "kind"), ("input",)}

    def test_a_local_variable_of_a_rules_name_hides_nothing(self) -> None:
        assert paths("secret := input.session\ndecision := [secret | secret := input.tool.id]") == {
            "tool.id",
            "session",
        }

    def test_the_stock_bundle_is_cacheable(self) -> None:
        bundle = load_bundle(default_bundle_path())
        found = read_set(load_program(bundle), entry_path(DECISION))
        assert isinstance(found, ReadSet)


class TestBehaviour:
    """Hits, misses, and what is never kept."""

    RULES = 'decision := {"behavior": "allow", "updated_input": {"id": input.tool.id}}'

    def test_a_hit_is_marked_and_is_a_copy(self) -> None:
        decider = Decider([engine(self.RULES)], cache=DecisionCache())
        first = decider.decide(make_document())
        first.updated_input["id"] = "changed by the caller"  # type: ignore[index]
        first.extra["x"] = 1
        second = decider.decide(
            make_document({"invocation.id": "inv_2"}, time="2026-11-22T00:00:00Z")
        )
        assert (first.cached, second.cached) == (False, True)
        assert second.updated_input == {"id": "local.files.read_file"}
        assert second.extra == {}

    async def test_async_and_sync_share_it(self) -> None:
        decider = Decider([engine(self.RULES)], cache=DecisionCache())
        await decider.adecide(make_document())
        assert decider.decide(make_document()).cached

    def test_a_new_bundle_has_answers_of_its_own(self) -> None:
        subject = engine(self.RULES)
        decider = Decider([subject], cache=DecisionCache())
        old = subject.bundle
        decider.decide(make_document())
        subject.swap(engine('decision := {"behavior": "deny"} if input.tool.id').bundle)
        verdict = decider.decide(make_document())
        assert (verdict.behavior, verdict.cached) == (Behavior.DENY, False)
        subject.swap(old)
        verdict = decider.decide(make_document())
        assert verdict.cached, "the same bundle, compiled once, gives the same answers"
        assert verdict.behavior is Behavior.ALLOW

    def test_a_swap_between_key_and_answer_keeps_nothing(self) -> None:
        subject = engine(self.RULES)
        cache = DecisionCache()
        found = cache.lookup(subject, make_document())
        verdict = Decider([subject]).decide(make_document())
        subject.swap(engine('decision := {"behavior": "deny"} if input.tool.id').bundle)
        cache.put(subject, found, verdict, permitted=False)
        assert cache.stats().entries == 0

    @pytest.mark.parametrize(
        "rules",
        [
            "decision := to_number(input.tool.id)",
            "decision := {} if input.tool.destructive",
            'decision := {"behavior": "maybe", "x": input.tool.id}',
            'decision := {"behavior": "ask", "expires_at": "2030-01-01T00:00:00Z", "x": input.tool.id}',
        ],
    )
    def test_errors_and_decisions_that_expire_are_not_kept(self, rules: str) -> None:
        cache = DecisionCache()
        decider = Decider([engine(rules)], cache=cache)
        assert decider.decide(make_document()).cached is False
        assert decider.decide(make_document()).cached is False
        assert cache.stats().entries == 0

    def test_it_is_bounded_and_keeps_what_was_used_last(self) -> None:
        cache = DecisionCache(3)
        decider = Decider([engine(self.RULES)], cache=cache)
        for name in ("a", "b", "c", "a", "d"):
            decider.decide(make_document({"tool.id": name}))
        assert cache.stats().entries == 3
        assert decider.decide(make_document({"tool.id": "a"})).cached
        assert not decider.decide(make_document({"tool.id": "b"})).cached

    def test_nan_does_not_hit_the_entry_of_null(self) -> None:
        decider = Decider(
            [engine('decision := {"behavior": "allow"} if input.input.x == null')],
            cache=DecisionCache(),
        )
        assert decider.decide(make_document({"input": {"x": None}})).behavior is Behavior.ALLOW
        verdict = decider.decide(make_document({"input": {"x": float("nan")}}))
        assert (verdict.behavior, verdict.cached) == (Behavior.DENY, False)

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ({"x": None}, {}),
            ({"x": 1}, {"x": True}),
            ({"x": 1}, {"x": "1"}),
            ({"x": []}, {"x": {}}),
            ({"x": ""}, {"x": 0}),
        ],
    )
    def test_values_that_look_alike_have_keys_of_their_own(self, one: Any, two: Any) -> None:
        subject, cache = engine("decision := input.input.x"), DecisionCache()
        keys = [cache.key(subject, DECISION, make_document({"input": item})) for item in (one, two)]
        assert keys[0] != keys[1]

    def test_the_names_of_an_object_are_no_text(self) -> None:
        subject, cache = engine("decision := object.keys(input.input.x)"), DecisionCache()
        one, other = make_document({"input": {"x": {"k": 1}}}), make_document({"input": {"x": "k"}})
        assert cache.key(subject, DECISION, one) != cache.key(subject, DECISION, other)

    NAMES = 'decision := {"behavior": "allow"} if "x" in object.keys(input.input)'

    @pytest.mark.parametrize("value", ["other", 7, None, {"y": [1]}, ""])
    def test_what_no_rule_reads_does_not_miss(self, value: Any) -> None:
        decider = Decider([engine(self.NAMES)], cache=DecisionCache())
        assert not decider.decide(make_document({"input": {"x": "text"}})).cached
        assert decider.decide(make_document({"input": {"x": value}})).cached
        assert not decider.decide(make_document({"input": {"x": "text", "y": value}})).cached

    @pytest.mark.parametrize(
        "value",
        [
            float("nan"),
            "\ud800",
            b"x",
            {1, 2},
            [[[[[]]]]] * 20,
            "x" * 20_000,
            json.loads("[" * 200 + "]" * 200),
        ],
    )
    def test_what_an_engine_might_refuse_does_not_hit(self, value: Any) -> None:
        decider, fresh = (
            Decider([subject := engine(self.NAMES)], cache=DecisionCache()),
            Decider([subject]),
        )
        decider.decide(make_document({"input": {"x": "text"}}))
        document = make_document({"input": {"x": value}})
        verdict = decider.decide(document)
        assert plain(verdict) == plain(fresh.decide(document))
        assert not verdict.cached

    def test_many_threads(self) -> None:
        cache = DecisionCache(8)
        decider = Decider([engine(self.RULES)], cache=cache)
        wrong: list[Any] = []

        def work(seed: int) -> None:
            for number in range(150):
                name = f"t{(seed * 7 + number) % 13}"
                verdict = decider.decide(make_document({"tool.id": name}))
                if verdict.updated_input != {"id": name}:
                    wrong.append(verdict)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert cache.stats().entries <= 8


def plain(verdict: Any) -> Any:
    verdict = copy.copy(verdict)
    verdict.cached, verdict.duration = False, 0.0
    return verdict


LYING = Decider([engine("""
decision := {"behavior": behavior, "rule_refs": refs, "reason": {"message": message}, "extra": kinds}

default behavior := "allow"

behavior := "deny" if some path in input.facts.paths; path.escapes

refs := sort([role | some role in input.actor.roles; role != input.tool["name"]])

message := sprintf("%v", [input.input]) if input.session.interactive else := input.session.mode

kinds := {key: count(value.sources) | some key, value in input.facts.provenance}
""".replace("some path in input.facts.paths; path.escapes", "{\n\tsome path in input.facts.paths\n\tpath.escapes\n}"))],
    cache=DecisionCache(2000))  # fmt: skip
FRESH = Decider(LYING.engines)
STOCK = EmbeddedEngine(load_bundle(default_bundle_path()))
STOCK_CACHED = Decider([STOCK], cache=DecisionCache(2000))
STOCK_FRESH = Decider([STOCK])


@st.composite
def mutations(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """A document, and others that differ from it in one member each."""
    base, donor = draw(documents()), draw(documents())
    others = []
    for _ in range(4):
        mutant = copy.deepcopy(base)
        top = draw(st.sampled_from(sorted(base)))
        if isinstance(base[top], dict) and base[top] and isinstance(donor[top], dict):
            key = draw(st.sampled_from(sorted(base[top])))
            if key in donor[top]:
                mutant[top][key] = copy.deepcopy(donor[top][key])
        else:
            mutant[top] = copy.deepcopy(donor[top])
        others.append(mutant)
    return base, others


@settings(max_examples=25, deadline=None)
@given(mutations())
def test_cached_and_fresh_decisions_are_the_same(case: tuple[Any, list[Any]]) -> None:
    base, others = case
    for cached, fresh in ((LYING, FRESH), (STOCK_CACHED, STOCK_FRESH)):
        for document in (base, *others, base):
            assert plain(cached.decide(document)) == plain(fresh.decide(document))


@pytest.mark.parametrize("value", ["x", ["x"], None, 7])
def test_arguments_that_are_no_object_hit_nothing(value: Any) -> None:
    decider = Decider([engine(TestBehaviour.NAMES)], cache=DecisionCache())
    decider.decide(make_document({"input": {"x": 1}}))
    verdict = decider.decide(make_document({"input": value}))
    assert (verdict.behavior, verdict.cached) == (Behavior.DENY, False)


FREE_TEXTS = [
    "",
    "text",
    "/etc/passwd",
    "https://evil.example/",
    "//host/x",
    "../up",
    "a b",
    7,
    None,
    ["x", "//y"],
    {"t": "~"},
]


@st.composite
def calls_of_tools(draw: st.DrawFn) -> list[Any]:
    """Documents of few tools with many texts: what guards tell apart, and what they leave out."""
    base = draw(documents())
    made = []
    for _ in range(8):
        document = copy.deepcopy(base)
        document["tool"]["kind"] = draw(
            st.sampled_from(["function", "file_operation", "retrieval"])
        )
        document["permission_profile"]["access_kinds"] = draw(
            st.sampled_from(
                [[], ["file_read"], ["network"], ["browser", "file_read"], ["external_send"]]
            )
        )
        names = draw(
            st.lists(
                st.sampled_from(["q", "path", "tenant", "tenant_id", "url"]),
                max_size=3,
                unique=True,
            )
        )
        document["input"] = {
            name: draw(st.sampled_from([*FREE_TEXTS, base["actor"]["tenant"]])) for name in names
        }
        made.append(document)
    return made


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(calls_of_tools())
def test_texts_of_tools_are_cached_as_they_are_decided(made: list[Any]) -> None:
    for document in made * 2:
        assert plain(STOCK_CACHED.decide(document)) == plain(STOCK_FRESH.decide(document))
