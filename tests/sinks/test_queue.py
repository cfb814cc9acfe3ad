"""Records leave through a bounded queue: numbered, without content, and whatever a sink does, tools
run as before.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from standard_consumer import Journal
from typer.testing import CliRunner

from agenttool_otel import Governor, TelemetrySettings
from agenttool_otel.cli.main import app
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.hooks import Hooks, Message
from agenttool_otel.telemetry.sinks import CallbackSink, CloudEventsSink, JsonlSink, Sink
from agenttool_otel.testing import StaticEngine, decision

SCHEMAS = Path(__file__).parent.parent / "spec_schemas"
OBJECTS = {
    "tool_event": "event",
    "tool_invocation": "invocation",
    "tool_permission_decision": "permission-decision",
    "input_mutation": "input-mutation",
    "tool_hook": "hook",
    "tool_result_persistence": "result-persistence",
    "tool_result": "result",
    "tool_declaration": "tool-declaration",
    "tool_interface": "tool-interface",
    "tool_execution_profile": "execution-profile",
    "tool_permission_profile": "permission-profile",
}
OF_THE_TOOL = 5
"""Records of the tool itself: its declaration, interface and profiles, and an event."""
OF_A_CALL = 10
"""Records of a call that is allowed: seven events, the invocation, its decision and its result."""


def governed(
    *sinks: Sink, answer: Any = "allow", hooks: Hooks | None = None, **settings: Any
) -> Governor:
    telemetry = TelemetrySettings(sinks=sinks, **settings)
    return Governor(
        policy=StaticEngine(answer), approvals="sqlite://", telemetry=telemetry, hooks=hooks
    )


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def act(text: str = "a") -> str:
    return text * 3


# --- what is in a line ----------------------------------------------------------------------------


def test_every_record_is_valid_by_the_standards_schema(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: Message("noted"), "post_tool_use", hook_id="noter")
    governor = governed(
        JsonlSink(tmp_path / "r"),
        answer={"act": decision("allow"), "no": decision("deny")},
        hooks=hooks,
    )
    governor.govern(act).tool.invoke(text="b")
    governor.govern(act, name="no").tool.invoke(text="b")
    governor.govern(act, name="act", max_inline_chars=10).tool.invoke(text="long " * 100)
    governor.close()
    lines = read(tmp_path / "r")
    kinds = {line["object"] for line in lines}
    assert kinds == set(OBJECTS) - {"input_mutation"}
    for line in lines:
        schema = json.loads(
            (SCHEMAS / f"agenttool-{OBJECTS[line['object']]}.schema.json").read_text()
        )
        assert list(jsonschema_rs.validator_for(schema).iter_errors(line["record"])) == []
    assert [line["sequence"] for line in lines] == list(range(1, len(lines) + 1))
    assert len({line["producer"] for line in lines}) == 1


@pytest.mark.parametrize("capture", ["NO_CONTENT", "SPAN_AND_EVENT"])
def test_content_is_in_captured_events_alone(tmp_path: Path, capture: Any) -> None:
    def fail(text: str) -> str:
        raise ValueError(f"about {text}")

    hooks = Hooks()
    hooks.add(
        lambda ctx: Message(f"seen {ctx.arguments['text']}"), "post_tool_use", hook_id="noter"
    )
    governor = governed(JsonlSink(tmp_path / "r"), hooks=hooks, capture=capture)
    governor.govern(act).tool.invoke(text="marigold")
    governor.govern(fail).tool.invoke(text="marigold")
    governor.close()
    holding = [line for line in read(tmp_path / "r") if "marigold" in json.dumps(line)]
    assert bool(holding) is (capture != "NO_CONTENT")
    assert {line["object"] for line in holding} <= {"tool_event"}


def test_a_captured_secret_is_redacted_first(tmp_path: Path) -> None:
    secret = "ghp" + "_" + hashlib.sha256(b"sinks").hexdigest()[:36]
    governor = governed(JsonlSink(tmp_path / "r"), capture="SPAN_AND_EVENT")
    governor.govern(act).tool.invoke(text=f"token {secret}")
    governor.close()
    assert secret not in (tmp_path / "r").read_text()
    assert "gen_ai.tool.call.arguments" in (tmp_path / "r").read_text()


# --- whatever a sink does, tools run --------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_callback_that_raises_costs_records_alone(error: type[BaseException]) -> None:
    seen: list[Any] = []

    def callback(line: Any) -> None:
        seen.append(line)
        raise error("no")

    sink = CallbackSink(callback)
    governor = governed(sink)
    tool = governor.govern(act)
    assert [tool("x") for _ in range(3)] == ["xxx"] * 3
    governor.close()
    assert sink.lost == len(seen) > 3
    assert governor.telemetry.losses.total == sink.lost


def test_a_sink_of_ones_own_whose_put_raises_breaks_nothing() -> None:
    class Dead(Sink):
        def put(self, build: Any) -> None:
            raise SystemExit("dead")

    governor = governed(Dead())
    assert governor.govern(act)("x") == "xxx"
    assert governor.telemetry.losses.total


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_costs_records_alone() -> None:
    sink = JsonlSink("/dev/full")
    governor = governed(sink)
    assert governor.govern(act)("x") == "xxx"
    governor.close()
    assert sink.lost == OF_THE_TOOL + OF_A_CALL
    assert set(governor.telemetry.losses.by_kind()) == {("sink", "OSError")}


@pytest.mark.unchecked_records("records are lost on purpose")
def test_a_full_queue_drops_and_leaves_a_gap(tmp_path: Path) -> None:
    let_go = threading.Event()

    class Held(JsonlSink):
        def write(self, lines: list[Any]) -> None:
            let_go.wait(30)
            super().write(lines)

    sink = Held(tmp_path / "r", queue=20)
    governor = governed(sink)
    tool = governor.govern(act)
    assert [tool("x") for _ in range(50)] == ["xxx"] * 50
    let_go.set()
    assert sink.flush(30)
    tool("x")
    governor.close()
    journal = Journal().read(tmp_path / "r")
    assert sink.lost > 100
    assert journal.missing == sink.lost
    assert list(journal.calls.values())[-1].status == "succeeded"


# --- processes ------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, threading, time
from agenttool_otel import Governor, TelemetrySettings
from agenttool_otel.telemetry.sinks import CallbackSink, JsonlSink
from agenttool_otel.testing import StaticEngine
sink = JsonlSink(sys.argv[1])
governor = Governor(policy=StaticEngine("allow"), approvals="sqlite://", telemetry=TelemetrySettings(sinks=(sink,)))
tool = governor.govern(lambda: "v", name="act")
"""


def run_program(path: Path, body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM + textwrap.dedent(body), str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_waits_is_written_when_the_interpreter_ends(tmp_path: Path) -> None:
    done = run_program(tmp_path / "r", "for _ in range(200): tool()\nsys.exit(3)")
    assert done.returncode == 3, done.stderr
    assert len(Journal().read(tmp_path / "r").calls) == 200


@pytest.mark.slow
def test_a_sink_that_hangs_lets_the_interpreter_end(tmp_path: Path) -> None:
    begin = time.monotonic()
    done = run_program(
        tmp_path / "r",
        """
        never = CallbackSink(lambda line: threading.Event().wait())
        telemetry = TelemetrySettings(sinks=(never,))
        other = Governor(policy=StaticEngine("allow"), approvals="sqlite://", telemetry=telemetry)
        other.govern(lambda: "v", name="act")()
        """,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_writes_under_a_number_of_its_own(tmp_path: Path) -> None:
    done = run_program(
        tmp_path / "r",
        """
        for _ in range(50): tool()
        child = os.fork()
        for _ in range(20): tool()
        sink.flush(30)
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert done.returncode == 0, done.stderr
    journal = Journal().read(tmp_path / "r")
    assert len(journal.producers) == 2
    assert (len(journal.calls), journal.missing) == (90, 0)
    assert len(read(tmp_path / "r")) == 2 * OF_THE_TOOL + 90 * OF_A_CALL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_until_no_record_is_being_built(tmp_path: Path) -> None:
    """What a record's building holds, as pydantic does while it builds a model, would be held in
    the child for ever.
    """
    done = run_program(
        tmp_path / "r",
        """
        held, begun = threading.Lock(), threading.Event()
        def build():
            with held:
                begun.set()
                time.sleep(0.5)
            return [("tool_event", {"pid": os.getpid()})]
        sink.put(build)
        begun.wait(30)
        child = os.fork()
        sink.put(build)
        sink.flush(30)
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert done.returncode == 0, done.stderr
    assert len({line["record"]["pid"] for line in read(tmp_path / "r")}) == 2
    assert len(read(tmp_path / "r")) == 3


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_build_that_hangs_does_not_hold_up_a_fork_for_ever(tmp_path: Path) -> None:
    done = run_program(
        tmp_path / "r",
        """
        begun = threading.Event()
        def hang():
            begun.set()
            threading.Event().wait()
        sink.put(hang)
        begun.wait(30)
        child = os.fork()
        if child == 0:
            tool()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert done.returncode == 0, done.stderr
    assert len(Journal().read(tmp_path / "r").calls) == 1


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    done = run_program(
        tmp_path / "r",
        """
        for _ in range(100): tool()
        sink.flush(30)
        for _ in range(100): tool()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert done.returncode == -9
    assert 100 <= len(Journal().read(tmp_path / "r").calls) <= 200


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_a_write_that_stops_within_a_line_spoils_no_other(tmp_path: Path) -> None:
    done = run_program(
        tmp_path / "r",
        """
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        tool(); sink.flush(30)
        size = os.path.getsize(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
        tool(); sink.flush(30)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        tool(); sink.flush(30)
        print(sink.lost)
        """,
    )
    assert done.returncode == 0, done.stderr
    lost = int(done.stdout)
    assert lost > 0
    shown = CliRunner().invoke(app, ["records", str(tmp_path / "r")])
    assert f"{lost} numbers are missing, 0 lines can't be read" in shown.output
    whole = [line for line in (tmp_path / "r").read_text().splitlines() if line.endswith("}}")]
    assert sum(json.loads(line)["object"] == "tool_result" for line in whole) == 2


# --- files, closing -------------------------------------------------------------------------------


def test_a_file_is_private_and_its_directory_has_to_be_there(tmp_path: Path) -> None:
    governor = governed(JsonlSink(tmp_path / "r"))
    governor.govern(act)()
    governor.close()
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600
    with pytest.raises(ConfigurationError, match="directory"):
        JsonlSink(tmp_path / "none" / "r")
    with pytest.raises(ConfigurationError, match="queue"):
        JsonlSink(tmp_path / "r", queue=0)


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "r").symlink_to(tmp_path / "target")
    sink = JsonlSink(tmp_path / "r")
    governor = governed(sink)
    assert governor.govern(act)() == "aaa"
    governor.close()
    assert (tmp_path / "target").read_text() == ""
    assert sink.lost


def test_a_file_that_grew_too_large_gives_way_to_a_new_one(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "r", max_bytes=20_000)
    governor = governed(sink)
    tool = governor.govern(act)
    for _ in range(30):
        tool()
        sink.flush()
    governor.close()
    assert (tmp_path / "r").stat().st_size <= 20_000
    assert (tmp_path / "r.1").stat().st_size <= 20_000
    assert read(tmp_path / "r")[-1]["object"] == "tool_result"


@pytest.mark.slow
def test_a_closed_sink_takes_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "r")
    governor = governed(sink)
    tool = governor.govern(act)
    tool()
    sink.close()
    written = len(read(tmp_path / "r"))
    assert tool("x") == "xxx"
    assert written == len(read(tmp_path / "r")) == OF_THE_TOOL + OF_A_CALL
    assert sink.lost == 8  # seven events, and the records of the end at once


def test_a_closed_governor_leaves_a_shared_sink_open(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "r")
    first, second = governed(sink), governed(sink)
    tool = second.govern(act)
    first.close()
    assert tool("x") == "xxx"
    second.close()
    assert len(read(tmp_path / "r")) == OF_THE_TOOL + OF_A_CALL
    assert sink.lost == 0


def test_a_large_result_is_not_held_by_the_queue() -> None:
    class Large:
        pass

    let_go = threading.Event()
    sink = CallbackSink(lambda line: let_go.wait(30))
    governor = governed(sink)
    gone = threading.Event()
    value = Large()
    import weakref

    weakref.finalize(value, gone.set)
    tool = governor.govern(lambda: box.pop(), name="act")
    box = [value]
    del value
    tool()
    tool_result_waits = not sink.flush(0.05)
    assert tool_result_waits
    assert gone.wait(60)
    let_go.set()
    governor.close()


def test_the_environment_names_a_sink(tmp_path: Path) -> None:
    settings = Settings.load({"AGENTTOOL_SINK": f"file:{tmp_path / 'r'}"})
    governor = Governor(settings=settings, policy=StaticEngine("allow"), approvals="sqlite://")
    assert governor.govern(act)("x") == "xxx"
    governor.close()
    assert len(read(tmp_path / "r")) == OF_THE_TOOL + OF_A_CALL


@pytest.mark.parametrize("value", ["calls.jsonl", "ftp://x", "file:/no/such/directory/r"])
def test_a_sink_that_cannot_be_used_is_told_and_left_out(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings.load({"AGENTTOOL_SINK": value})
    governor = Governor(settings=settings, policy=StaticEngine("allow"), approvals="sqlite://")
    assert governor.govern(act)("x") == "xxx"
    assert governor.telemetry.settings.sinks == ()
    assert len(caplog.records) == 1
    governor.close()


# --- CloudEvents ----------------------------------------------------------------------------------


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]], list[int]]]:
    """A real HTTP server that keeps what it gets and answers with the status that it is told."""
    got: list[tuple[dict[str, str], bytes]] = []
    status = [202]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/events", got, status
    server.shutdown()
    server.server_close()


def test_cloud_events_arrive_over_http(receiver: Any) -> None:
    from cloudevents.core.bindings.http import HTTPMessage, from_http_event

    url, got, _ = receiver
    governor = governed(CloudEventsSink(url, headers={"X-Key": "k"}))
    result = governor.govern(act).tool.invoke(text="b")
    governor.close()
    events = [from_http_event(HTTPMessage(headers, body)) for headers, body in got]
    types = [event.get_type() for event in events]
    assert types[0] == "tool_declaration"
    assert types[-1] == "tool_result"
    assert all(
        event.get_attributes()["sequence"] == str(number) for number, event in enumerate(events, 1)
    )
    data = events[-1].get_data()
    assert isinstance(data, dict)
    assert data["result_id"] == result.result_id
    assert {headers["X-Key"] for headers, _ in got} == {"k"}


@pytest.mark.parametrize("how", ["refused", "redirects", "nobody"])
def test_an_endpoint_that_fails_costs_records_alone(receiver: Any, how: str) -> None:
    url, _, status = receiver
    status[0] = 307 if how == "redirects" else 500
    sink = CloudEventsSink("http://127.0.0.1:9/" if how == "nobody" else url, timeout_s=2)
    governor = governed(sink)
    assert governor.govern(act)("x") == "xxx"
    assert sink.flush(30)
    assert sink.lost == OF_THE_TOOL + OF_A_CALL


def test_cloud_events_go_to_a_file_that_records_reads(tmp_path: Path) -> None:
    governor = governed(CloudEventsSink(tmp_path / "r"))
    result = governor.govern(act).tool.invoke(text="b")
    governor.close()
    assert {line["specversion"] for line in read(tmp_path / "r")} == {"1.0"}
    shown = CliRunner().invoke(app, ["records", str(tmp_path / "r")], env={"COLUMNS": "300"})
    assert shown.exit_code == 0
    assert result.invocation_id in shown.output
    assert "8 tool_event" in shown.output


# --- agenttool records ----------------------------------------------------------------------------


def test_records_shows_calls_and_what_is_missing(tmp_path: Path) -> None:
    governor = governed(
        JsonlSink(tmp_path / "r"), answer={"act": decision("allow"), "no": decision("deny")}
    )
    good = governor.govern(act).tool.invoke(text="b")
    bad = governor.govern(act, name="no").tool.invoke(text="b")
    governor.close()
    env = {"COLUMNS": "300"}
    shown = CliRunner().invoke(app, ["records", str(tmp_path / "r")], env=env)
    assert shown.exit_code == 0
    [row] = [line for line in shown.output.splitlines() if bad.invocation_id in line]
    assert "deny" in row
    assert "permission_denied" in row
    assert "2 calls" in shown.output
    assert "missing" not in shown.output
    denied = CliRunner().invoke(
        app, ["records", str(tmp_path / "r"), "--status", "denied"], env=env
    )
    assert bad.invocation_id in denied.output
    assert good.invocation_id not in denied.output
    whole = CliRunner().invoke(
        app, ["records", str(tmp_path / "r"), "--invocation", good.invocation_id]
    )
    kinds = [json.loads(line)["object"] for line in whole.output.splitlines()]
    assert kinds == ["tool_event"] * 7 + [
        "tool_invocation",
        "tool_permission_decision",
        "tool_result",
    ]
    lines = (tmp_path / "r").read_text().splitlines(keepends=True)
    (tmp_path / "r").write_text("".join([*lines[:2], "{torn\n", *lines[4:]]))
    shown = CliRunner().invoke(app, ["records", str(tmp_path / "r")], env=env)
    assert "2 numbers are missing, 1 lines can't be read" in shown.output


def test_records_says_what_it_cannot_find(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["records", str(tmp_path / "none")]).exit_code == 2
    (tmp_path / "r").write_text("")
    assert (
        CliRunner().invoke(app, ["records", str(tmp_path / "r"), "--invocation", "inv_x"]).exit_code
        == 1
    )


def test_foreign_text_reaches_the_terminal_escaped(tmp_path: Path) -> None:
    record = {
        "invocation_id": "inv_\x1b[31m",
        "tool_id": "[bold]\x1b]0;x",
        "status": "failed",
        "error": [],
    }
    for kind in ("tool_invocation", "tool_result", "tool_permission_decision"):
        line = {"producer": "p", "sequence": 1, "object": kind, "record": record}
        with (tmp_path / "r").open("a") as file:
            file.write(json.dumps(line) + "\n")
    shown = CliRunner().invoke(app, ["records", str(tmp_path / "r")], env={"COLUMNS": "300"})
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert "[bold]" in shown.output
