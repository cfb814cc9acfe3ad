"""The standard's scenarios, examined by way of a process: this package passes them, others get a
report, and what is broken turns red.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agenttool_otel.authoring.opa_program import find_opa
from agenttool_otel.cli.main import app
from agenttool_otel.conformance.checking import Outcome, Report, examine
from agenttool_otel.conformance.judging import rego_of
from agenttool_otel.conformance.own import OwnSubject
from agenttool_otel.conformance.process import SubjectProcess
from agenttool_otel.conformance.running import run_steps
from agenttool_otel.conformance.scenarios import read_scenarios
from agenttool_otel.conformance.subject import METHODS, ask, misfits, scenario_misfits

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILES = ROOT / "src" / "agenttool_otel" / "conformance" / "scenarios"
SUBJECT = ROOT / "examples" / "conformance" / "subject.mjs"
OWN = [sys.executable, "-m", "agenttool_otel.conformance"]
NODE = shutil.which("node")


def run(command: Sequence[str], *numbers: int, time_limit: float = 60) -> Report:
    chosen = [each for each in read_scenarios() if not numbers or each.number in numbers]
    return examine(lambda: SubjectProcess(command, time_limit=time_limit), chosen, command=command)


def mutated(file: str, old: str, new: str) -> list[str]:
    change = json.dumps({"file": file, "old": old, "new": new})
    return [sys.executable, str(HERE / "mutated_subject.py"), change]


@pytest.fixture(scope="module")
def whole() -> Report:
    return run(OWN)


@pytest.mark.slow
def test_all_scenarios_pass(whole: Report) -> None:
    assert [outcome.number for outcome in whole.outcomes] == list(range(1, 18))
    assert {
        outcome.number: outcome.failures for outcome in whole.outcomes if outcome.failures
    } == {}
    ours = {outcome.number: outcome.ours_failed for outcome in whole.outcomes}
    assert {number: failed for number, failed in ours.items() if failed} == {}
    assert whole.passed
    assert whole.subject == "agenttool-otel"


def test_the_scenarios_are_the_standards_own_words() -> None:
    page = (HERE / "acceptance-scenarios.md").read_text(encoding="utf-8")
    words = [line.split(". ", 1)[1] for line in page.splitlines() if line[:1].isdigit()]
    titles = [scenario.title for scenario in read_scenarios()]
    assert titles == [line.replace("`", "") for line in words]


@pytest.mark.parametrize("file", sorted(FILES.glob("*.json")), ids=lambda file: file.stem)
def test_a_scenario_fits_its_schema(file: Path) -> None:
    assert scenario_misfits(json.loads(file.read_text(encoding="utf-8"))) == []


def test_a_scenario_with_another_member_misses_its_schema() -> None:
    document = json.loads((FILES / "13-empty-result.json").read_text(encoding="utf-8"))
    document["steps"][0]["declare"]["tools"][0]["read_only"] = True
    assert scenario_misfits(document) != []


def test_what_is_sent_and_answered_fits_the_protocol() -> None:
    sent = []

    class Noting(OwnSubject):
        def request(self, method: str, params: dict[str, Any]) -> Any:
            sent.append((method, misfits(f"{method}_params", params)))
            return super().request(method, params)

    subject = Noting()
    ask(subject, "initialize", {"protocol_version": 1, "schema_version": "0.2.0"})
    for scenario in read_scenarios():
        if scenario.number in (2, 6, 11):
            run_steps(scenario.steps, subject)
    subject.close()
    methods = {method for method, _ in sent}
    assert methods >= {"initialize", "declare", "surface", "search", "load", "invoke", "answer"}
    assert [pair for pair in sent if pair[1]] == []


def messages(page: str) -> Iterator[dict[str, Any]]:
    """The JSON documents of the fenced blocks of a page."""
    decoder = json.JSONDecoder()
    for block in page.split("```json")[1:]:
        text = block.split("\n", 1)[1].split("```")[0]
        while text.strip():
            message, end = decoder.raw_decode(text.lstrip())
            text = text.lstrip()[end:]
            yield message


def test_the_messages_on_the_page_fit_the_protocol() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    methods = {}
    for message in messages(page):
        if "method" in message:
            methods[message["id"]] = message["method"]
            assert misfits(f"{message['method']}_params", message["params"]) == []
        elif "result" in message:
            assert misfits(f"{methods[message['id']]}_result", message["result"]) == []
        elif "steps" in message:
            assert scenario_misfits(message) == []
    assert set(methods.values()) == set(METHODS)


@pytest.mark.opa
def test_a_real_opa_reads_the_rules(tmp_path: Path) -> None:
    program = find_opa() or str(ROOT / ".servers" / "opa")
    if not Path(program).is_file():
        pytest.skip("no OPA program found: set AGENTTOOL_OPA or run make servers")
    for scenario in read_scenarios():
        rules = rego_of([*scenario.standard, *scenario.ours])
        file = tmp_path / f"{scenario.number}.rego"
        file.write_text(rules, encoding="utf-8")
        done = subprocess.run([program, "check", "--strict", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# --- another implementation -----------------------------------------------------------------------

NEEDS_NODE = pytest.mark.skipif(NODE is None, reason="the program node is not here")


@NEEDS_NODE
def test_a_subject_in_another_language_passes_what_it_implements() -> None:
    report = run(["node", str(SUBJECT)])
    states = {outcome.number: outcome.state for outcome in report.outcomes}
    passed = [number for number, state in states.items() if state == "pass"]
    assert passed == [3, 4, 5, 7, 8, 13, 14, 15, 17]
    assert {state for number, state in states.items() if number not in passed} == {"lacks"}
    assert report.lacks == [
        "changes of the input",
        "deferred loading and surfaces",
        "progress, cancellation and timeouts",
        "result persistence",
        "scheduling of calls that run together",
    ]


@NEEDS_NODE
def test_what_is_this_packages_own_fails_no_other() -> None:
    [outcome] = run(["node", str(SUBJECT)], 15).outcomes
    assert outcome.passed
    assert len(outcome.ours_failed) == outcome.ours > 0


@NEEDS_NODE
@pytest.mark.parametrize(
    ("old", "new", "number", "finding"),
    [
        (
            'if (behavior === "deny") throw',
            'if (behavior === "deny") run(tool, request.arguments);\n    if (behavior === "deny") throw',
            8,
            "bodies of echo ran, of 0 calls that may have run",
        ),
        (
            'if (behavior === "deny") throw new Refusal("permission_denied", reason.message, "denied", "denied");\n'
            '    if (behavior === "allow")',
            'if (behavior !== "ask")',
            8,
            "a call ran on the decision deny",
        ),
        ("stated.when ?? {}", "{}", 4, "what it accepts runs"),
        ("external_mappings: request.external_mappings ?? [], ", "", 17, "the ids of a call"),
        ("model_input_ref: input,", "model_input: request.arguments,", 5, "canary"),
        ("is_open_world: tool.is_open_world ?? true", "is_open_world: true", 15, "untrusted"),
    ],
    ids=[
        "the body of a denied call runs",
        "a denied call succeeds",
        "a decision about some arguments is about all",
        "native ids of calls are dropped",
        "arguments are recorded",
        "every result is of the open world",
    ],
)
def test_a_broken_subject_fails(
    tmp_path: Path, old: str, new: str, number: int, finding: str
) -> None:
    text = SUBJECT.read_text(encoding="utf-8")
    assert old in text
    broken = tmp_path / "broken.mjs"
    broken.write_text(text.replace(old, new, 1), encoding="utf-8")
    [outcome] = run(["node", str(broken)], number).outcomes
    assert outcome.state == "FAIL"
    assert finding in "\n".join(outcome.failures)


IGNORES_DENIALS = """
import json, sys
from agenttool_otel.conformance.judging import rego_of
from agenttool_otel.conformance.own import OwnSubject

class Subject(OwnSubject):
    def request(self, method, params):
        result = super().request(method, params)
        for call, ended in zip(params.get("calls", ()), result.get("calls", ())):
            if ended["result"]["status"] == "denied":
                self._world._bodies.run(call["tool"], [], call["arguments"])
        return result

subject = Subject()
for line in sys.stdin:
    message = json.loads(line)
    result = subject.request(message["method"], message["params"])
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_subject_that_ignores_a_denial_fails() -> None:
    [outcome] = run([sys.executable, "-c", IGNORES_DENIALS], 8).outcomes
    assert outcome.state == "FAIL"
    assert "1 bodies of echo ran, of 0 calls that may have run" in outcome.failures


ANSWERS_NUMBERS = """
import json, sys
from agenttool_otel.conformance.judging import rego_of
from agenttool_otel.conformance.own import OwnSubject

subject = OwnSubject()
for line in sys.stdin:
    message = json.loads(line)
    result = subject.request(message["method"], message["params"])
    for line in result.get("records", ()):
        line["record"] = dict.fromkeys(line["record"], 7)
    for call in result.get("calls", ()):
        call["result"] = dict.fromkeys(call["result"], 7)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_values_of_any_kind_are_findings() -> None:
    [outcome] = run([sys.executable, "-c", ANSWERS_NUMBERS], 9).outcomes
    assert outcome.state == "FAIL"
    assert "tool_result /status: type" in outcome.failures
    assert any(failure.startswith("schema: tool_event /time") for failure in outcome.failures)


# --- a subject that breaks the protocol -----------------------------------------------------------

GREETS = """
import json, sys, time
request = json.loads(sys.stdin.readline())
reply = {"jsonrpc": "2.0", "id": request["id"], "result": {"name": "broken"}}
print(json.dumps(reply), flush=True)
sys.stdin.readline()
"""


def broken_by(lines: str) -> Outcome:
    [outcome] = run([sys.executable, "-c", GREETS + lines], 13, time_limit=5).outcomes
    assert outcome.state == "broken"
    assert not outcome.passed
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("sys.exit(7)", "the subject ended during declare, exit code 7"),
        ("time.sleep(60)", "no reply to declare within 5 s"),
        ("print('declaring ...', flush=True); time.sleep(60)", "is no JSON object"),
        ("print('[]', flush=True); time.sleep(60)", "is no JSON object"),
        ("print('{\"id\": 77}', flush=True); time.sleep(60)", "has id 77, not 2"),
        ("print('{\"id\": 2}', flush=True); time.sleep(60)", "has neither result nor error"),
        (
            'print(\'{"id": 2, "result": {}}\', flush=True); time.sleep(60)',
            'does not fit the protocol: /: "declarations" is a required property',
        ),
    ],
)
def test_a_subject_that_breaks_the_protocol_fails(lines: str, message: str) -> None:
    assert message in broken_by(lines).broken


def test_a_broken_subject_is_started_again_for_the_next_scenario(tmp_path: Path) -> None:
    # it ends in scenario 13, the first time
    script = f"""
import pathlib, sys
from agenttool_otel.conformance.__main__ import main
mark = pathlib.Path({str(tmp_path / "mark")!r})
if mark.exists():
    main()
mark.touch()
{GREETS}
"""
    outcomes = run([sys.executable, "-c", script], 13, 14).outcomes
    assert [outcome.state for outcome in outcomes] == ["broken", "pass"]


def test_a_subject_that_answers_with_an_error_fails() -> None:
    lines = (
        GREETS
        + """
error = {"code": -32603, "message": "out of order"}
print(json.dumps({"id": 2, "error": error}), flush=True)
sys.stdin.read()
"""
    )
    [outcome] = run([sys.executable, "-c", lines], 13).outcomes
    assert outcome.failures == ["the subject answered declare with an error: out of order"]


@pytest.mark.slow
def test_a_subject_that_does_not_end_is_killed() -> None:
    lines = "time.sleep(60)\n"
    process = SubjectProcess([sys.executable, "-c", GREETS + lines], time_limit=30)
    process.request("initialize", {})
    process.close()
    assert process.exit_code == -9


# --- this package, broken -------------------------------------------------------------------------


def test_a_mutant_of_this_package_is_noticed() -> None:
    command = mutated(
        "results/errors/error_tables.py",
        "FAILED: Final = Verdict(ErrorClass.EXECUTION_FAILED)",
        "FAILED: Final = Verdict(ErrorClass.DEPENDENCY_UNAVAILABLE)",
    )
    [outcome] = run(command, 11).outcomes
    assert outcome.state == "FAIL"
    assert "the tool's failure is execution_failed" in outcome.failures[0]


# --- the command ----------------------------------------------------------------------------------


def test_the_command_examines_a_program_and_reports(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    arguments = ["conformance", "--scenario", "13", "--report", str(path), "--", *OWN]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "1 of 1 scenarios pass" in shown.output
    report = json.loads(path.read_text(encoding="utf-8"))
    assert (report["subject"], report["passed"]) == ("agenttool-otel", True)
    assert report["command"] == OWN
    assert report["outcomes"][0]["number"] == 13
    assert "succeeded" in report["seen"]["results"]


@pytest.mark.parametrize(
    ("program", "code", "message"),
    [
        (["no-such-program"], 2, "no-such-program can't be started"),
        ([sys.executable, "-c", "print('hello')"], 3, "is no JSON object"),
        ([sys.executable, "-c", GREETS], 3, "the subject ended during declare"),
    ],
    ids=["absent", "no subject", "ends"],
)
def test_a_program_that_is_no_subject_has_its_exit_code(
    program: list[str], code: int, message: str
) -> None:
    arguments = ["conformance", "--scenario", "13", "--", *program]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert shown.exit_code == code
    assert message in shown.output


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--ours"], 1)])
def test_own_expectations_count_where_they_are_asked_for(options: list[str], code: int) -> None:
    # its text is still the marker of an empty result
    broken = mutated("results/content/map_content.py", '"empty": True', '"empty": "yes"')
    arguments = ["conformance", "--scenario", "13", *options, "--", *broken]
    assert CliRunner().invoke(app, arguments).exit_code == code
