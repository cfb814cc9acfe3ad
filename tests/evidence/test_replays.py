"""Recorded decisions on their own policy, and on another one."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from recorded_calls import record_calls, replayed, stock
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from agenttool_otel.evidence.chain import Reading, read_lines
from agenttool_otel.evidence.files import key_of
from agenttool_otel.evidence.replay import Candidate
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.bundles.overlay import overlay
from samples import one_in

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "agent_commands.jsonl.gz"
WORDS = (
    "src",
    "/etc/hosts",
    "'a b'",
    "~/.ssh/id_rsa",
    "notes.txt",
    "$HOME",
    "../x",
    "--force",
    "-rf",
)
PROGRAMS = (
    "ls",
    "cat",
    "rm",
    "git push",
    "curl https://a.example/",
    "Frobnicate",
    "sudo tee",
    "dd",
)


def generated(count: int) -> list[str]:
    """Command lines of many forms."""
    source = random.Random(count)
    lines = []
    for _ in range(count):
        parts = [
            " ".join([source.choice(PROGRAMS), *source.choices(WORDS, k=source.randrange(4))])
            for _ in range(source.randrange(1, 4))
        ]
        lines.append(source.choice((" && ", " | ", "; ", " > ")).join(parts))
    return lines


def run(*arguments: str | Path) -> Result:
    """Run ``agenttool policy replay``."""
    return CliRunner().invoke(app, ["policy", "replay", *map(str, arguments)])


def changed(settings: dict[str, Any]) -> Bundle:
    """The stock policy with settings."""
    return overlay(stock(), data={"agenttool": {"settings": settings}})


def candidate(root: Path, name: str, rule: str) -> Path:
    """An extension with one rule."""
    root.mkdir(exist_ok=True)
    (root / f"{name}.rego").write_text(
        f"package agenttool.custom.{name}\n\n{rule}\n", encoding="utf-8"
    )
    return root


def test_on_their_own_policy_decisions_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path, generated(200))
    found = replayed(path, stock())
    assert [each for each in found if not each.same or each.unsure] == []
    assert {each.before for each in found} == {"allow", "ask", "deny"}


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded commands are not here")
def test_recorded_commands_replay_the_same(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    lines = gzip.decompress(CORPUS.read_bytes()).decode().splitlines()
    record_calls(path, [json.loads(line)["command"] for line in lines[:3000]])
    assert [each for each in replayed(path, stock()) if not each.same or each.unsure] == []


ACME = """deny contains {"rule": "custom.acme.build", "message": "no"} if {
	some fact in input.facts.shell
	some command in fact.commands
	some place in command.places
	startswith(place.path.lexical, "/srv/acme/")
}

allow contains {
	"rule": "custom.acme.mail",
	"message": "known",
	"waives": ["agenttool.rules.declared.access_external_send", "agenttool.rules.declared.unstated"],
} if {
	lower(input.input.recipient) == "ann@example.org"
}"""
CHANGED: dict[str, Bundle] = {
    "coding": changed({"preset": "coding"}),
    "strict": changed({"preset": "strict"}),
    "hosts": changed({"network": {"allowed_hosts": ["files.example.net", "*.example.com"]}}),
    "sql": changed({"effects": {"agenttool.rules.sql.writes": "deny"}}),
    "budget": changed({"budgets": {"session": {"calls": 0}}}),
    "rules": overlay(
        stock(),
        extension=bundle_from_files(
            {"acme.rego": f"package agenttool.custom.acme\n\n{ACME}\n".encode()}, origin="acme"
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, CHANGED))
def test_another_policy_is_decided_as_it_would_have_been(tmp_path: Path, name: str) -> None:
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    record_calls(before, generated(40))
    record_calls(after, generated(40), policy=CHANGED[name])
    replays = replayed(before, CHANGED[name])
    predicted = [(each.after, each.rule_after) for each in replays]
    true = [(each.before, each.rule_before) for each in replayed(after, CHANGED[name])]
    assert predicted == true
    assert [each.unsure for each in replays if each.unsure] == []
    assert any(not each.same for each in replays)


def test_calls_that_differ_in_unknown_words_are_decided_once(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path, ["cat qjzkv.txt", "cat wxyzq.txt", "cat Wxyzq.txt"])
    candidate = Candidate(stock(), key_of(path))
    lines = list(read_lines([path], key_of(path), Reading()))[:3]
    documents = [candidate.document(line["record"]) for line in lines]
    first, second, capital = (document["facts"]["shell"] for document in documents)
    assert first == second
    assert first != capital  # a rule may ask for small letters


@pytest.mark.slow
def test_processes_find_what_one_finds(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path, generated(490))
    assert replayed(path, stock(), jobs=2) == replayed(path, stock(), jobs=1)


def test_a_host_of_the_candidates_own_list_is_found(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    data = {"agenttool": {"settings": {"network": {"allowed_hosts": ["files.example.net"]}}}}
    policy = overlay(stock(), data=data)
    (ftp,) = [each for each in replayed(tmp_path / "d.jsonl", policy) if not each.same]
    assert ftp.tool.endswith("fetch")


def test_a_folder_of_a_candidates_rule_is_found(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    rule = """deny contains {"rule": "custom.acme", "message": "no"} if {
	some fact in input.facts.paths
	startswith(fact.lexical, "/srv/acme/")
}"""
    folder = candidate(tmp_path / "try", "acme", rule)
    done = run("--from", tmp_path / "d.jsonl", "--candidate", folder, "--json")
    assert done.exit_code == 0, done.output
    changes = json.loads(done.stdout)["changes"]
    assert {(each["rule_after"], each["count"]) for each in changes} == {("custom.acme", 1)}


def test_a_widening_fails_and_comes_first(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"agenttool": {"settings": {"preset": "coding"}}}))
    done = run("--from", tmp_path / "d.jsonl", "--data", data, "--json")
    assert done.exit_code == 1, done.output
    report = json.loads(done.stdout)
    assert report["widened"] > 0
    assert report["changes"][0]["widens"]


def test_an_approved_widening_passes(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"agenttool": {"settings": {"preset": "coding"}}}))
    assert run("--from", tmp_path / "d.jsonl", "--data", data, "--approve", "*").exit_code == 0


UNSURE = {
    'input.resources.ticket.state == "open"': "resources, which was not recorded",
    "count(input.session.history) > 3": "session.history, which was not recorded",
    "input.input.limit > 1000": "arguments that were not recorded whole",
    'some fact in input.facts.paths; contains(fact.lexical, "prod")': "(contains) looks inside",
    'input.input.recipient < "m"': "(order of texts) looks inside",
    "count(input.input.body) > 40": "(count) looks inside",
    'concat("", [input.input.body, "x"]) == "hellox"': "(concat) looks inside",
    'sprintf("%sx", [input.input.body]) == "hellox"': "(sprintf) looks inside",
    'upper(input.input.body) == "HELLO THERE"': "(upper) looks inside",
}
SURE = (
    "count(input.facts.paths) > 1",
    "input.session.counters.calls > 10",
    'startswith(input.tool.name, "se")',
    'some fact in input.facts.paths; startswith(fact.lexical, "/srv/acme/")',
    'lower(input.input.recipient) == "eve@example.org"',
    'sprintf("%s/x", [input.session.cwd]) == "/srv/acme/x"',
    'input.input.recipient == "eve@example.org"',
    'text := sprintf("(%s)", [input.input.body]); x := {"message": text}; x.text == 1',
)


def tried(folder: Path, condition: str, calls: tuple[str, ...] = ()) -> Result:
    """A replay on a candidate with one rule, which denies under a condition."""
    record_calls(folder / "d.jsonl", calls)
    rule = f'deny contains {{"rule": "custom.x", "message": "no"}} if {{ {condition} }}'
    return run("--from", folder / "d.jsonl", "-c", candidate(folder / "try", "x", rule))


@pytest.mark.slow
@pytest.mark.parametrize("condition", UNSURE)
def test_what_was_not_recorded_is_named(tmp_path: Path, condition: str) -> None:
    done = tried(tmp_path, condition)
    assert done.exit_code == 2, done.output
    assert UNSURE[condition] in " ".join(done.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("condition", SURE)
def test_what_is_the_same_for_digests_is_sure(tmp_path: Path, condition: str) -> None:
    done = tried(tmp_path, condition)
    assert done.exit_code == 0, done.output


def test_a_candidates_word_in_mixed_letters_is_unsure(tmp_path: Path) -> None:
    done = tried(tmp_path, 'lower(input.input.command) == "echo bigcorp"', ("echo bigCorp",))
    assert done.exit_code == 2
    assert "large and small letters mixed" in done.output


def test_changed_records_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path)
    path.write_bytes(path.read_bytes().replace(b'"deny"', b'"allow"', 1))
    done = run("--from", path)
    assert done.exit_code == 2
    assert "was changed or taken out" in done.output


def test_a_decision_on_another_bundle_names_both_rules(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    modules: Any = {
        file: text for file, text in stock().modules.items() if "/rules/network/" not in file
    }
    policy = replace(stock(), modules=modules, digest="other")
    found = [each for each in replayed(tmp_path / "d.jsonl", policy) if not each.same]
    assert "agenttool.rules.network.address" in {each.rule_before for each in found}
