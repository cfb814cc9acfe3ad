"""What a decision record holds, and what it never holds."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.trace import INVALID_SPAN
from policy_inputs import make_document
from recorded_calls import WORD, forms, lines_of, record_calls

from agenttool_otel.evidence.record import DecisionRecorder
from agenttool_otel.evidence.words import Words
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.types import EngineAnswer, PolicyInput
from agenttool_otel.telemetry.sinks import Build, Sink

ROOT = Path(__file__).resolve().parents[2]


def test_each_decision_of_a_call_leaves_one_record(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    lines = lines_of(tmp_path / "d.jsonl")
    assert [line["sequence"] for line in lines] == list(range(1, 28))


def test_a_record_names_decision_rule_and_bundle(tmp_path: Path) -> None:
    governor = record_calls(tmp_path / "d.jsonl")
    decision = lines_of(tmp_path / "d.jsonl")[0]["record"]["decision"]
    assert decision["behavior"] == "allow"
    assert decision["rule"] == "agenttool.rules.shell.read_only"
    assert decision["bundle"] == governor.decider.engines[0].bundle.digest  # type: ignore[attr-defined]


class Held(Sink):
    """A sink whose thread does not run until a test wants it to."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Build] = []

    def put(self, build: Build) -> None:
        self.held.append(build)


def bundle_that(behavior: str, revision: str) -> Bundle:
    rule = f'package agenttool.permission\n\ndecision := {{"behavior": "{behavior}"}}\n'
    manifest = json.dumps({"revision": revision})
    files = {"p.rego": rule.encode(), ".manifest": manifest.encode()}
    return bundle_from_files(files, origin="test")


@pytest.mark.parametrize("revision", ["1", "2"])
def test_a_decision_has_the_bundle_that_was_in_force(revision: str) -> None:
    before, sink = bundle_that("allow", "1"), Held()
    engine = EmbeddedEngine(before)
    decider, document = Decider([engine]), make_document()
    recorder = DecisionRecorder([sink], Words(b"k" * 32))
    recorder.record(decider, document, decider.decide(document), INVALID_SPAN)
    engine.swap(bundle_that("deny", revision))
    ((_, record),) = sink.held[0]()
    assert record["decision"]["bundle"] == before.digest


class SwappedMeanwhile(EmbeddedEngine):
    """An engine that another thread gives another bundle as soon as it has evaluated."""

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        answer = super().evaluate(entry_point, document, timeout=timeout)
        self.swap(bundle_that("deny", "2"))
        return answer


def test_a_swap_before_the_record_changes_no_bundle() -> None:
    before, sink = bundle_that("allow", "1"), Held()
    decider, document = Decider([SwappedMeanwhile(before)]), make_document()
    recorder = DecisionRecorder([sink], Words(b"k" * 32))
    recorder.record(decider, document, decider.decide(document), INVALID_SPAN)
    ((_, record),) = sink.held[0]()
    decision = record["decision"]
    assert (decision["revision"], decision["bundle"]) == ("1", before.digest)


def test_a_decision_has_the_bundle_of_its_own_engine() -> None:
    passing, deciding, sink = bundle_that("passthrough", "1"), bundle_that("deny", "2"), Held()
    decider = Decider([EmbeddedEngine(passing), EmbeddedEngine(deciding)])
    document = make_document()
    recorder = DecisionRecorder([sink], Words(b"k" * 32))
    recorder.record(decider, document, decider.decide(document), INVALID_SPAN)
    ((_, record),) = sink.held[0]()
    decision = record["decision"]
    assert (decision["revision"], decision["bundle"]) == ("2", deciding.digest)


def test_a_decision_names_its_open_questions(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    decisions = [line["record"]["decision"] for line in lines_of(tmp_path / "d.jsonl")]
    asked = [each for each in decisions if each["behavior"] == "ask"]
    assert asked
    assert all(each["rule"] in each["open_questions"] for each in asked)


def test_an_approved_call_names_what_answered(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", ["rm -rf /srv/acme/build"], approver=lambda request: True)
    lines = [line["record"] for line in lines_of(tmp_path / "d.jsonl")]
    decisions = [line["decision"] for line in lines if "decision" in line]
    answered = [pair for each in decisions for pair in each.get("answered_questions", ())]
    assert answered
    assert all(pair.keys() == {"question", "by"} for pair in answered)


def test_a_call_that_only_asks_what_would_be_leaves_none(tmp_path: Path) -> None:
    from agenttool_otel import Governor

    governor = Governor(decisions=f"file:{tmp_path / 'd.jsonl'}")
    governor.govern(lambda path: path, name="read", path_args=["path"]).tool.check(path="a")
    governor.close()
    assert not (tmp_path / "d.jsonl").exists()


def test_in_shadow_mode_the_policys_own_answer_is_recorded(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", policy_mode="shadow")
    decisions = [line["record"]["decision"] for line in lines_of(tmp_path / "d.jsonl")]
    assert {decision["mode"] for decision in decisions} == {"shadow"}
    assert "deny" in {decision["behavior"] for decision in decisions}


def test_where_it_can_not_be_recorded_calls_go_on(tmp_path: Path) -> None:
    from agenttool_otel import Governor

    governor = Governor(decisions=f"file:{tmp_path / 'no' / 'folder' / 'd.jsonl'}")
    assert governor.govern(lambda a: a, name="same", read_only=True)(1) == 1


def test_the_vocabulary_is_that_of_names_and_stock_rules() -> None:
    code = "import evidence_words as e, sys; sys.exit(e.make_vocabulary() != e.TARGET.read_text())"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tools").returncode == 0


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("canaries")


@settings(max_examples=12, deadline=None)
@given(word=WORD)
def test_no_word_of_arguments_leaves_in_any_form(recorder: Path, word: str) -> None:
    path = recorder / f"{hashlib.sha256(word.encode()).hexdigest()}.jsonl"
    lines = [
        f"cat {word}",
        f"echo {word} > /srv/acme/{word}.txt",
        f"curl -H 'X: {word}' https://{word}.example/{word}?q={word}",
        f"{word}=1 {word} --{word}={word} <<< {word}",
    ]
    record_calls(path, lines)
    text = path.read_text("utf-8").lower()
    assert [form for form in forms(word) if form.lower() in text] == []


def test_numbers_of_arguments_are_left_out(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", ["ls"])
    (read, *_) = [
        line["record"]
        for line in lines_of(tmp_path / "d.jsonl")
        if line["record"]["input"]["tool"]["name"] == "read_file"
    ]
    assert "12345" not in json.dumps(read["input"]["input"])
    assert len(read["shortened"]) == 1


@given(word=WORD)
def test_digests_keep_the_case_so_that_lower_finds_equals(word: str) -> None:
    words = Words(b"key")
    assert words.hide(word.upper()).lower() == words.hide(word.lower())


@given(word=WORD)
def test_words_in_mixed_letters_differ_but_for_their_case(word: str) -> None:
    words, first = Words(b"key"), f"q{word}Q"
    assert words.hide(first).lower() == words.hide(first.lower())
    assert words.hide(first) not in {words.hide(form(first)) for form in FORMS}


FORMS = (str.lower, str.upper, str.capitalize)


@given(st.text(), st.binary(min_size=1))
def test_another_key_makes_other_digests(text: str, key: bytes) -> None:
    hidden = Words(key).hide(text)
    assert "^" not in hidden or hidden != Words(key + b"x").hide(text)


@given(st.lists(WORD, min_size=2, max_size=6))
def test_other_names_for_words_keep_which_are_equal(words: list[str]) -> None:
    hider = Words(b"key")
    finder = hider.finder(words[:1])
    hidden = [hider.hide(word) for word in words]
    named = finder.reveal_alike(hidden)
    assert named[0] == words[0]
    assert [named.index(name) for name in named] == [words.index(word) for word in words]
    folded = [name.lower() for name in named[1:]]
    assert len(set(folded)) == len({digest.lower() for digest in hidden[1:]})
