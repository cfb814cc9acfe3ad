"""``agenttool trace``: sources, filters, stories and refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from spans_made import make
from typer.testing import CliRunner

from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.trace import app
from agenttool_otel.names import Attr

runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.fixture
def document() -> dict[str, Any]:
    return MessageToDict(encode_spans(make()))


@pytest.fixture
def file(tmp_path: Path, document: dict[str, Any]) -> str:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document), "utf-8")
    return str(path)


def test_a_file_is_drawn_with_its_summary(file: str) -> None:
    result = runner.invoke(app, [file])
    assert result.exit_code == 0
    assert "execute_tool read_file" in result.output
    assert "Tool calls" in result.output


def test_json_lines_of_the_collector_are_read(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(
        json.dumps(document) + "\n" + json.dumps({"resourceMetrics": []}) + "\n", "utf-8"
    )
    result = runner.invoke(app, [str(path), "--summary"])
    assert result.exit_code == 0
    assert "send_mail" in result.output


def test_standard_input_is_read(document: dict[str, Any]) -> None:
    result = runner.invoke(app, ["-"], input=json.dumps(document))
    assert result.exit_code == 0
    assert "read_file" in result.output


def test_why_takes_the_start_of_a_span_id_or_an_invocation(
    file: str, document: dict[str, Any]
) -> None:
    denied = next(SpanView.from_sdk(s) for s in make() if "read_file" in s.name)
    by_invocation = runner.invoke(app, [file, "--why", "inv_1"])
    assert "denied it" in by_invocation.output
    from agenttool_otel.cli.spans import spans_from_document

    span = next(s for s in spans_from_document(document) if s.name == denied.name)
    assert runner.invoke(app, [file, "--why", span.span_id[:8]]).output == by_invocation.output


def test_an_unknown_span_is_an_error_of_its_own(file: str) -> None:
    result = runner.invoke(app, [file, "--why", "inv_none"])
    assert result.exit_code == 2
    assert "no span or call inv_none" in result.output


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--session", "s-1"], True),
        (["--session", "s-2"], False),
        (["--rule", "paths.outside_roots"], True),
        (["--behavior", "deny", "--tool", "read_file"], True),
        (["--behavior", "deny", "--tool", "send_mail"], False),
        (["--approval", "appr_1"], True),
        (["--service", "shop"], True),
        (["--service", "other"], False),
        (["--trace", "1" * 32], False),
    ],
)
def test_filters_keep_traces_with_a_call_that_meets_all_of_them(
    file: str, options: list[str], found: bool
) -> None:
    assert runner.invoke(app, [file, *options]).exit_code == (0 if found else 1)


def test_a_filter_shows_matching_calls_and_their_parents(file: str) -> None:
    denied = runner.invoke(app, [file, "--behavior", "deny"]).output
    whole = runner.invoke(app, [file, "--behavior", "deny", "--whole"]).output
    assert "deny" in denied
    assert "✓" not in denied
    assert "✓" in whole
    assert len(denied.splitlines()) < len(whole.splitlines())


@pytest.mark.parametrize("text", ["", "no json", "[1]", '{"a": 1}\nno json', "[" * 100_000])
def test_a_file_that_is_no_trace_is_refused_without_a_traceback(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    result = runner.invoke(app, [str(path)])
    assert result.exit_code in {1, 2}
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    result = runner.invoke(app, [str(tmp_path / "none.json")])
    assert result.exit_code == 2
    assert "can't be read: FileNotFoundError" in result.output


# --- servers; the real Jaeger is asked in tests/servers -------------------------------------------


@contextmanager
def server(routes: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """A loopback HTTP server: path to answer, an integer for a status, or a string to
    redirect to.
    """
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked.append((parts.path, parse_qs(parts.query), dict(self.headers)))
            answer = routes.get(parts.path, 404)
            if isinstance(answer, str):
                self.send_response(302)
                self.send_header("Location", answer)
                self.end_headers()
                return
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            if not isinstance(answer, int):
                self.wfile.write(
                    answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                )

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", asked
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)


def test_tempo_is_recognised_searched_and_fetched_from(document: dict[str, Any]) -> None:
    routes = {
        "/api/search": {"traces": [{"traceID": "ab12"}]},
        "/api/v2/traces/ab12": {"trace": document},
    }
    with server(routes) as (url, asked):
        result = runner.invoke(
            app,
            [
                url,
                "--session",
                's"1',
                "--behavior",
                "deny",
                "--header",
                "X-Scope-OrgID: t1",
                "--service",
                "shop",
            ],
        )
    assert result.exit_code == 1, "the server found a trace, but it has no such session"
    (search,) = [query for path, query, _ in asked if path == "/api/search"]
    assert search["q"] == [
        '{ span.gen_ai.operation.name = "execute_tool" && resource.service.name = "shop"'
        f' && span.{Attr.SESSION_ID} = "s\\"1" && span.{Attr.PERMISSION_BEHAVIOR} = "deny" }}'
    ]
    assert all(
        {k.lower(): v for k, v in headers.items()}["x-scope-orgid"] == "t1"
        for _, _, headers in asked
    )


def test_one_trace_of_tempo_is_fetched_by_its_id(document: dict[str, Any]) -> None:
    trace_id = f"{next(iter(make())).context.trace_id:032x}"
    with server({f"/api/v2/traces/{trace_id}": {"trace": document}}) as (url, _):
        result = runner.invoke(app, [url, "--backend", "tempo", "--trace", trace_id])
    assert result.exit_code == 1, "the answer holds another trace than the one asked for"


def test_jaeger_wants_a_service_when_there_are_several() -> None:
    with server({"/api/services": {"data": ["a", "b"]}}) as (url, _):
        result = runner.invoke(app, [url])
    assert result.exit_code == 2
    assert "--service is needed: there are 2 services" in result.output


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (404, "there is no such trace"),
        (401, "--header"),
        (500, "answered 500"),
        (b"<html>", "not JSON"),
    ],
)
def test_a_server_that_answers_otherwise_is_told_plainly(answer: Any, told: str) -> None:
    with server({"/api/traces/ab": answer}) as (url, _):
        result = runner.invoke(app, [f"{url}/api/traces/ab"])
    assert result.exit_code == 2
    assert told in result.output


def test_headers_never_follow_a_redirect_to_another_origin() -> None:
    with server({}) as (elsewhere, asked), server({"/api/traces/ab": f"{elsewhere}/x"}) as (url, _):
        result = runner.invoke(app, [f"{url}/api/traces/ab", "--header", "Authorization: Bearer x"])
    assert result.exit_code == 2
    assert "another origin" in result.output
    assert asked == []


def test_a_server_that_is_down_is_told() -> None:
    with server({}) as (url, _):
        pass
    result = runner.invoke(app, [url])
    assert result.exit_code == 2
    assert "can't be reached" in result.output


@pytest.mark.parametrize(
    "option", [["--header", "no colon"], ["--header", "X: a\nY: b"], ["--trace", "../x"]]
)
def test_options_that_would_change_the_request_are_refused(option: list[str]) -> None:
    with server({}) as (url, asked):
        assert runner.invoke(app, [url, *option]).exit_code == 2
    assert asked == []


@pytest.mark.slow
def test_a_demo_can_be_saved_and_drawn_again(tmp_path: Path) -> None:
    from agenttool_otel.cli.main import app as whole

    path = tmp_path / "trace.json"
    assert runner.invoke(whole, ["demo", "--save", str(path)]).exit_code == 0
    drawn = runner.invoke(app, [str(path)])
    assert drawn.exit_code == 0
    assert "execute_tool" in drawn.output
    [first, *_] = json.loads(path.read_text("utf-8"))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len(bytes.fromhex(first["traceId"])) == 16  # as OTLP's JSON form has it


def test_console_exporter_output_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "console.txt"
    path.write_text('{\n    "name": "execute_tool f"\n}\n{\n    "name": "g"\n}\n', "utf-8")
    result = runner.invoke(app, [str(path)])
    assert result.exit_code == 2
    assert "demo --save" in result.output
