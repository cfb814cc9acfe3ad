"""An extension made of what people agreed to, and what it never permits."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given, settings
from recorded_calls import WORD, forms, lines_of, stock
from typer.testing import CliRunner

from agenttool_otel import Governor, agent_context
from agenttool_otel.approvals.approvers import CallbackApprover
from agenttool_otel.cli.main import app
from agenttool_otel.evidence.files import key_of
from agenttool_otel.evidence.replay import Candidate
from agenttool_otel.evidence.suggesting import Suggestion, suggest
from agenttool_otel.names import Behavior
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

WORDS = "srv acme docs out md touch main mails example org ann bob eve team"
CALLS: list[tuple[str, dict[str, Any], bool]] = [
    ("sh", {"command": "touch docs/a.txt"}, True),
    ("sh", {"command": "touch docs/b.txt"}, True),
    ("sh", {"command": "rm -rf docs"}, False),
    ("sh", {"command": "mkfs /dev/sda"}, False),
    ("write_file", {"path": "/srv/acme/out/a.md", "text": "x"}, True),
    ("write_file", {"path": "/srv/acme/out/b.md", "text": "x"}, True),
    ("write_file", {"path": "/srv/acme/main.py", "text": "x"}, False),
    ("send", {"recipient": "ann@team.example.org", "body": "x"}, True),
    ("send", {"recipient": "bob@team.example.org", "body": "x"}, True),
    ("send", {"recipient": "eve@mails.example.org", "body": "x"}, False),
    ("share", {"user": "ann", "item": "x"}, True),
    ("share", {"user": "zaphod", "item": "x"}, True),
    ("clear", {"note": "x"}, True),
]


def record(path: Path, calls: list[tuple[str, dict[str, Any], bool]] = CALLS) -> None:
    """Make calls, each answered by a person who agrees to it or not."""
    answers: dict[str, bool] = {}

    def answer(request: Any) -> bool:
        return answers["now"]

    approver = CallbackApprover(answer, answered_by="user:ann")
    governor = Governor(decisions=f"file:{path}", approver=approver)
    options: dict[str, Any] = {
        "sh": {
            "tool_kind": "shell_command",
            "command_args": ["command"],
            "write_effects": ["local_persistent"],
        },
        "write_file": {
            "path_args": ["path"],
            "access_kinds": ["file_write"],
            "write_effects": ["local_persistent"],
        },
        "send": {"access_kinds": ["external_send"], "write_effects": ["remote_mutation"]},
        "share": {"access_kinds": ["external_send"], "write_effects": ["remote_mutation"]},
        "clear": {"write_effects": ["remote_mutation"]},
    }
    bodies: dict[str, Any] = {
        "sh": lambda command: "ok",
        "write_file": lambda path, text: "ok",
        "send": lambda recipient, body: "ok",
        "share": lambda user, item: "ok",
        "clear": lambda note: "ok",
    }
    tools = {
        name: governor.govern(bodies[name], name=name, namespace="demo", **options[name])
        for name in options
    }
    for number, (name, arguments, agreed) in enumerate(calls):
        answers["now"] = agreed
        with (
            agent_context(
                actor="agent:tester", session_id=f"s-{number}", roots=["/srv/acme"], cwd="/srv/acme"
            ),
            suppress(Exception),
        ):
            tools[name](**arguments)
    governor.close()


def run(*arguments: str | Path) -> Result:
    """Run ``agenttool policy``."""
    return CliRunner().invoke(app, ["policy", *map(str, arguments)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("suggested")
    record(folder / "d.jsonl")
    (folder / "words.txt").write_text(WORDS, encoding="utf-8")
    done = run(
        *("suggest", "--from", folder / "d.jsonl", "-o", folder / "made"),
        *("--words", folder / "words.txt", "--json"),
    )
    assert done.exit_code == 0, done.output
    return folder, json.loads(done.stdout)


def data_of(folder: Path) -> dict[str, Any]:
    """What the extension lists, by rule."""
    seen: dict[str, Any] = load_bundle(folder / "made").data["agenttool"]["custom"]["seen"]
    return seen


def test_it_is_checked_without_a_warning(made: tuple[Path, dict[str, Any]]) -> None:
    done = run("check", made[0] / "made", "--strict")
    assert done.exit_code == 0, done.output


def test_its_own_tests_pass(made: tuple[Path, dict[str, Any]]) -> None:
    done = run("test", made[0] / "made", "--engine", "embedded")
    assert done.exit_code == 0, done.output


def test_what_people_agreed_to_runs_without_a_question(made: tuple[Path, dict[str, Any]]) -> None:
    done = run("replay", "--from", made[0] / "d.jsonl", "-c", made[0] / "made", "--json")
    assert done.exit_code == 1, done.output
    tools = [each["tool"] for each in json.loads(done.stdout)["changes"] if each["widens"]]
    assert sorted(set(tools)) == ["demo.send", "demo.sh", "demo.share", "demo.write_file"]


def test_steps_are_folder_domain_and_program(made: tuple[Path, dict[str, Any]]) -> None:
    seen = data_of(made[0])
    assert seen["write_file_4"]["folders"] == [{"access": "write", "path": "/srv/acme/out"}]
    assert seen["send_1"]["receivers"]["recipient"]["domains"] == ["team.example.org"]
    assert seen["sh_2"]["programs"] == [{"category": "writer", "words": ["touch"]}]


def test_one_value_is_learnt_as_it_is(made: tuple[Path, dict[str, Any]]) -> None:
    user = data_of(made[0])["share_3"]["receivers"]["user"]
    assert user == {"values": ["ann"], "domains": []}


def test_hidden_words_are_named_and_not_learnt(made: tuple[Path, dict[str, Any]]) -> None:
    (share,) = [each for each in made[1]["not_learnt"] if each["tool"] == "demo.share"]
    assert (share["calls"], len(share["hidden"])) == (1, 1)


def test_a_call_that_names_nobody_is_not_learnt(made: tuple[Path, dict[str, Any]]) -> None:
    (clear,) = [each for each in made[1]["not_learnt"] if each["tool"] == "demo.clear"]
    assert clear["reason"] == "no argument names whom or what it reaches"


def test_denials_and_rejections_are_its_tests(made: tuple[Path, dict[str, Any]]) -> None:
    text = (made[0] / "made/agenttool/custom/suggested_test.rego").read_text("utf-8")
    assert made[1]["refused"] == text.count('"refused ') == 4
    assert "test_what_was_denied_or_rejected_is_not_allowed" in text


def suggested(
    folder: Path, calls: list[tuple[str, dict[str, Any], bool]], words: str = WORDS
) -> Suggestion:
    """What is learnt of some calls."""
    record(folder / "d.jsonl", calls)
    return suggest(lines_of(folder / "d.jsonl"), stock(), key_of(folder / "d.jsonl"), [words])


def writing(name: str, agreed: bool) -> tuple[str, dict[str, Any], bool]:
    """A call that writes a file."""
    return "write_file", {"path": f"/srv/acme/out/{name}", "text": "x"}, agreed


def test_a_step_that_would_take_a_rejected_call_in_is_not_taken(tmp_path: Path) -> None:
    calls = [writing("ann.md", True), writing("bob.md", True), writing("eve.md", False)]
    made = suggested(tmp_path, calls)
    (one,) = made.learnt
    assert (len(one.exact["places"]), one.wider) == (2, {})


def test_a_call_that_was_rejected_once_is_not_learnt(tmp_path: Path) -> None:
    made = suggested(tmp_path, [writing("ann.md", True), writing("ann.md", False)])
    assert (made.files, made.unlearnt[0].reason) == ({}, "equal calls were denied or rejected")


def test_another_receiver_beside_a_learnt_one_is_asked_about(tmp_path: Path) -> None:
    made = suggested(tmp_path, [("send", {"recipient": "ann@team.org", "body": "x"}, True)])
    files = {name: text.encode() for name, text in made.files.items()}
    whole = overlay(stock(), extension=bundle_from_files(files, origin="made"))
    document = made.learnt[0].calls[0].document
    decider = Decider((EmbeddedEngine(whole),), timeout=10)
    assert decider.decide(document).behavior == "allow"
    document["input"]["bcc"] = "eve@mails.org"
    assert decider.decide(document).behavior == "ask"


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(word=WORD)
def test_no_hidden_word_stands_in_an_extension(canaries: Path, word: str) -> None:
    folder = canaries / sha256(word.encode()).hexdigest()
    folder.mkdir()
    calls = [
        writing("ann.md", True),
        writing(f"{word}.md", False),
        ("send", {"recipient": "ann@team.org", "body": word}, True),
        ("send", {"recipient": f"{word}@team.org", "body": "x"}, True),
        ("sh", {"command": f"touch out/{word}"}, True),
    ]
    text = "".join(suggested(folder, calls).files.values()).lower()
    assert text
    assert [form for form in forms(word) if form.lower() in text] == []


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("canaries")


@pytest.mark.slow
def test_what_the_demo_was_denied_stays_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.jsonl"
    monkeypatch.setenv("AGENTTOOL_DECISIONS", f"file:{path}")
    assert CliRunner().invoke(app, ["demo"]).exit_code == 0
    lines, key = lines_of(path), key_of(path)
    made = suggest(lines, stock(), key, [WORDS])
    refused = [line for line in lines if stayed_refused(line, lines)]
    files = {name: text.encode() for name, text in made.files.items()}
    extension = bundle_from_files(files, origin="made") if files else None
    policy = Candidate(overlay(stock(), extension=extension), key)
    decided = [policy.decide(policy.document(line["record"])).behavior for line in refused]
    assert len(refused) > 3
    assert Behavior.ALLOW not in decided


def stayed_refused(line: dict[str, Any], lines: list[dict[str, Any]]) -> bool:
    """Whether a line is a decision that was a denial, or a question that was rejected."""
    if line["object"] != "agenttool.decision" or was_allowed(line):
        return False
    call = line["record"]["input"]["invocation"]["id"]
    answers = [each["record"] for each in lines if each["object"] == "agenttool.answer"]
    rejected = {each["invocation_id"] for each in answers if each["answer"] == "rejected"}
    return line["record"]["decision"]["behavior"] == "deny" or call in rejected


def was_allowed(line: dict[str, Any]) -> bool:
    """Whether a decision let a rehearsal begin, whose effects a person rejected after it."""
    return bool(line["record"]["decision"]["behavior"] == "allow")
