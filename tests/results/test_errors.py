"""Every kind of native failure becomes the class, reference and guidance that tell an agent what to
do next.
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import httpx
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from agenttool_otel.errors import TAXONOMY, ApprovalRequired, ToolDenied, ToolTimeout
from agenttool_otel.names import AbortReason, ErrorClass, Recoverability
from agenttool_otel.records import ToolError, ToolResult
from agenttool_otel.results.errors.control_flow import cancellation, control_flow
from agenttool_otel.results.errors.mapper import ErrorMapper, classify


class _Answers(BaseHTTPRequestHandler):
    """Answers /<status> with that status, and with the headers in the query as JSON."""

    def do_GET(self):
        path, _, query = self.path.partition("?")
        self.send_response(int(path.strip("/")))
        for name, value in json.loads(urllib.parse.unquote(query) or "{}").items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def _with_requests(url):
    with requests.Session() as session:
        session.trust_env = False
        session.get(url, timeout=5).raise_for_status()


def _with_httpx(url):
    with httpx.Client(trust_env=False) as client:
        client.get(url).raise_for_status()


def _with_urllib(url):
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5)


def _with_aiohttp(url):
    async def get():
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            answer.raise_for_status()

    asyncio.run(get())


CLIENTS = [_with_requests, _with_httpx, _with_urllib, _with_aiohttp]


def caught(call, *args):
    try:
        call(*args)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ErrorClass.INVALID_ARGUMENTS),
        (401, ErrorClass.CREDENTIAL_MISSING),
        (403, ErrorClass.CREDENTIAL_MISSING),
        (404, ErrorClass.EXECUTION_FAILED),
        (408, ErrorClass.TIMEOUT),
        (429, ErrorClass.RATE_LIMITED),
        (500, ErrorClass.DEPENDENCY_UNAVAILABLE),
        (501, ErrorClass.CAPABILITY_GAP),
        (503, ErrorClass.DEPENDENCY_UNAVAILABLE),
        (504, ErrorClass.TIMEOUT),
    ],
)
def test_an_http_status_of_any_client_gives_the_class(server, client, status, expected):
    error = classify(caught(client, f"{server}/{status}"))
    assert (error.error_class, error.native_error_ref) == (expected, f"http:{status}")
    assert error.error_code == TAXONOMY[expected].code


@pytest.mark.parametrize("client", CLIENTS)
def test_retry_after_in_seconds_reaches_the_error(server, client):
    headers = urllib.parse.quote(json.dumps({"Retry-After": "17"}))
    assert classify(caught(client, f"{server}/429?{headers}")).retry_after == 17


def test_retry_after_as_a_date_becomes_seconds(server):
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    headers = urllib.parse.quote(json.dumps({"Retry-After": when}))
    error = classify(caught(_with_httpx, f"{server}/503?{headers}"))
    assert error.retry_after is not None
    assert 55 < error.retry_after <= 60


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-5", 0), ("1e12", 86_400), ("nan", None), ("soon", None), ("Wed, 99 Foo", None)],
)
def test_a_nonsense_retry_after_is_bounded_or_left_out(text, expected):
    response = httpx.Response(
        429, headers={"Retry-After": text}, request=httpx.Request("GET", "http://x/")
    )
    assert classify(caught(response.raise_for_status)).retry_after == expected


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_connection_is_an_unavailable_dependency(client):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert (
        classify(caught(client, f"http://127.0.0.1:{port}/")).error_class
        is ErrorClass.DEPENDENCY_UNAVAILABLE
    )


def test_a_real_read_timeout_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert (
            classify(caught(lambda: httpx.get(url, timeout=0.1, trust_env=False))).error_class
            is ErrorClass.TIMEOUT
        )
        with requests.Session() as session:
            session.trust_env = False
            assert (
                classify(caught(lambda: session.get(url, timeout=0.1))).error_class
                is ErrorClass.TIMEOUT
            )


@pytest.mark.parametrize(
    ("exception", "expected", "recoverability"),
    [
        (TimeoutError("late"), ErrorClass.TIMEOUT, Recoverability.RETRY_LATER),
        (
            ConnectionResetError("gone"),
            ErrorClass.DEPENDENCY_UNAVAILABLE,
            Recoverability.RETRY_LATER,
        ),
        (
            PermissionError(errno.EACCES, "no"),
            ErrorClass.EXECUTION_FAILED,
            Recoverability.SETUP_NEEDED,
        ),
        (
            FileNotFoundError(errno.ENOENT, "x"),
            ErrorClass.EXECUTION_FAILED,
            Recoverability.CHANGE_ARGUMENTS,
        ),
        (ValueError("bad"), ErrorClass.EXECUTION_FAILED, Recoverability.CHANGE_ARGUMENTS),
        (KeyError("k"), ErrorClass.EXECUTION_FAILED, Recoverability.CHANGE_ARGUMENTS),
        (TypeError("t"), ErrorClass.EXECUTION_FAILED, Recoverability.UNKNOWN),
        (NotImplementedError(), ErrorClass.CAPABILITY_GAP, Recoverability.NOT_RECOVERABLE),
        (ModuleNotFoundError("m"), ErrorClass.SETUP_REQUIRED, Recoverability.SETUP_NEEDED),
        (OSError(errno.ENOSPC, "full"), ErrorClass.EXECUTION_FAILED, Recoverability.SETUP_NEEDED),
        (
            OSError(errno.EHOSTUNREACH, "far"),
            ErrorClass.DEPENDENCY_UNAVAILABLE,
            Recoverability.RETRY_LATER,
        ),
        (
            socket.gaierror(-2, "no such host"),
            ErrorClass.DEPENDENCY_UNAVAILABLE,
            Recoverability.RETRY_LATER,
        ),
        (
            ssl.SSLCertVerificationError("x"),
            ErrorClass.DEPENDENCY_UNAVAILABLE,
            Recoverability.SETUP_NEEDED,
        ),
        (urllib.error.URLError(TimeoutError()), ErrorClass.TIMEOUT, Recoverability.RETRY_LATER),
        (ToolException("x"), ErrorClass.EXECUTION_FAILED, Recoverability.UNKNOWN),
        (RuntimeError("x"), ErrorClass.EXECUTION_FAILED, Recoverability.UNKNOWN),
        (
            ToolTimeout("x", error_class=ErrorClass.TIMEOUT),
            ErrorClass.TIMEOUT,
            Recoverability.RETRY_LATER,
        ),
        (
            ToolDenied("x", error_class=ErrorClass.PERMISSION_DENIED),
            ErrorClass.PERMISSION_DENIED,
            Recoverability.CHANGE_ARGUMENTS_OR_POLICY,
        ),
        (asyncio.CancelledError(), ErrorClass.CANCELED, Recoverability.RETRY_SAFE),
    ],
)
def test_python_exceptions_map_to_class_and_guidance(exception, expected, recoverability):
    error = classify(exception)
    assert (error.error_class, error.recoverability) == (expected, recoverability)


def test_a_systems_permission_error_is_never_a_policy_denial(tmp_path):
    """Nobody decided it: an agent that is told "permission_denied" would ask for a policy change in
    vain.
    """
    assert classify(PermissionError("denied")).error_class is not ErrorClass.PERMISSION_DENIED


def test_exit_codes_and_signals_of_real_processes():
    def run(code):
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=30)

    failed = classify(caught(run, "raise SystemExit(3)"))
    assert (failed.error_class, failed.native_error_ref) == (ErrorClass.EXECUTION_FAILED, "exit:3")
    killed = classify(caught(run, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert killed.native_error_ref == "signal:9"
    missing = classify(caught(run, "raise SystemExit(127)"))
    assert missing.error_class is ErrorClass.SETUP_REQUIRED
    late = caught(
        lambda: subprocess.run([sys.executable, "-c", "import time; time.sleep(9)"], timeout=0.05)
    )
    assert isinstance(late, subprocess.TimeoutExpired)
    assert classify(late).error_class is ErrorClass.TIMEOUT


def test_a_stated_cause_says_what_a_wrapper_does_not():
    def wrapped():
        try:
            raise ConnectionRefusedError("x")
        except ConnectionRefusedError as error:
            raise RuntimeError("fetch failed") from error

    error = classify(caught(wrapped))
    assert error.error_class is ErrorClass.DEPENDENCY_UNAVAILABLE
    assert error.native_error_ref == "builtins.RuntimeError"


def test_a_context_that_nobody_stated_is_not_a_cause():
    def accident():
        try:
            raise ConnectionRefusedError("x")
        except ConnectionRefusedError:
            raise RuntimeError("bug in the handler")  # noqa: B904

    assert classify(caught(accident)).error_class is ErrorClass.EXECUTION_FAILED


def test_a_group_of_one_kind_has_it_and_a_mixed_one_is_partial():
    same = ExceptionGroup("g", [TimeoutError(), ExceptionGroup("h", [TimeoutError()])])
    assert classify(same).error_class is ErrorClass.TIMEOUT
    mixed = ExceptionGroup("g", [TimeoutError(), ValueError()])
    assert classify(mixed).error_class is ErrorClass.PARTIAL_FAILURE


def test_messages_enter_only_through_the_redactor():
    planted = "tok" + "en-" + "4711"
    exception = ValueError(f"bad credential {planted}")
    assert planted not in classify(exception).model_dump_json()
    cleaned = classify(exception, redact=lambda text: text.replace(planted, "[token]"))
    assert cleaned.message == "ValueError: bad credential [token]"


@pytest.mark.parametrize("redact", [lambda text: 1 / 0, lambda text: None, lambda text: b"x"])
def test_a_failing_redactor_withholds_the_message(redact):
    error = classify(ValueError("hush"), redact=redact)
    assert "hush" not in error.message
    assert "redaction failed" in error.message


def test_members_of_a_group_are_redacted_too():
    exception = ExceptionGroup("hush", [ValueError("hush"), KeyError("hush")])
    assert (
        "hush"
        not in classify(exception, redact=lambda text: text.replace("hush", "*")).model_dump_json()
    )


def test_a_long_message_is_redacted_before_it_is_cut():
    word = "secret-word"
    exception = ValueError("a " * 990 + word)
    message = classify(exception, redact=lambda text: text.replace(word, "[w]")).message
    assert len(message) <= 2000
    assert "secret" not in message


def test_a_word_cut_by_the_scan_limit_is_left_out_whole():
    exception = ValueError("x " * 32_765 + "partone" + "parttwo")
    seen = []
    classify(exception, redact=lambda text: seen.append(text) or "")
    assert "partone" not in seen[0]


class _Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")

    @property
    def response(self):
        raise OSError("no response for you")

    @property
    def status(self):
        return True


def test_an_exception_that_fights_back_is_still_an_error():
    error = classify(_Hostile(), redact=lambda text: text)
    assert error.error_class is ErrorClass.EXECUTION_FAILED
    assert error.message.endswith("_Hostile")


def test_botocore_and_grpc_shapes():
    throttled = Exception()
    throttled.response = {"ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {}}}
    assert classify(throttled).error_class is ErrorClass.RATE_LIMITED

    class Code:
        name = "DEADLINE_EXCEEDED"

    rpc = type("RpcError", (Exception,), {"__module__": "grpc._channel", "code": lambda self: Code})
    assert classify(rpc()).error_class is ErrorClass.TIMEOUT


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (-32601, ErrorClass.UNKNOWN_TOOL),
        (-32602, ErrorClass.INVALID_ARGUMENTS),
        (-32603, ErrorClass.EXECUTION_FAILED),
    ],
)
@pytest.mark.covers("remote-protocol-errors-are-distinct")
def test_mcp_codes(code, expected):
    data = type("ErrorData", (), {"code": code})
    mcp = type("McpError", (Exception,), {"__module__": "mcp.shared.exceptions", "error": data})
    assert classify(mcp()).error_class is expected
    assert not control_flow(mcp())


def test_a_users_mapping_wins_nearest_base_first():
    class Base(Exception):
        pass

    class Quota(Base):
        pass

    mapper = ErrorMapper()
    mapper.register(Base, ErrorClass.SETUP_REQUIRED)
    mapper.register(
        Quota, lambda error: ToolError.of(ErrorClass.RATE_LIMITED, "used up", retry_after=3)
    )
    assert mapper.classify(Base()).error_class is ErrorClass.SETUP_REQUIRED
    assert mapper.classify(Quota()).retry_after == 3
    mapper.register(f"{Quota.__module__}.{Quota.__qualname__}", lambda error: 1 / 0)
    assert mapper.classify(Quota()).error_class is ErrorClass.EXECUTION_FAILED


def test_a_users_message_goes_through_the_redactor():
    mapper = ErrorMapper(redact=lambda text: text.replace("hush", "*"))
    mapper.register(ValueError, lambda error: ToolError.of(ErrorClass.EXECUTION_FAILED, str(error)))
    assert mapper.classify(ValueError("hush")).message == "*"
    assert ErrorMapper().classify(ValueError("hush")).message == "ValueError"


def test_framework_pauses_are_control_flow_and_no_errors():
    class Mine(GraphInterrupt):
        pass

    assert control_flow(GraphBubbleUp())
    assert control_flow(Mine())
    assert control_flow(ApprovalRequired("wait"))
    assert control_flow(ExceptionGroup("g", [GraphBubbleUp()]))
    assert not control_flow(ExceptionGroup("g", [GraphBubbleUp(), ValueError()]))
    assert not control_flow(ValueError())
    assert control_flow(ValueError(), frozenset({"builtins.ValueError"}))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("workflows.runtime.types.results", "WaitingForEvent"),
        ("llama_index.core.workflow.context", "WaitingForEvent"),
        ("pydantic_ai.exceptions", "ApprovalRequired"),
        ("pydantic_ai.exceptions", "CallDeferred"),
        ("mcp.shared.exceptions", "UrlElicitationRequiredError"),
    ],
)
def test_pauses_of_missing_frameworks_are_known_by_name(module, name):
    assert control_flow(type(name, (Exception,), {"__module__": module})())
    assert not control_flow(type(name, (Exception,), {"__module__": "somewhere.else"})())


@pytest.mark.parametrize(
    ("exception", "reason"),
    [
        (asyncio.CancelledError(), AbortReason.UNKNOWN),
        (KeyboardInterrupt(), AbortReason.USER_INTERRUPTION),
        (GeneratorExit(), AbortReason.ABANDONED),
        (SystemExit(1), AbortReason.RUNTIME_SHUTDOWN),
        (BaseExceptionGroup("g", [asyncio.CancelledError()]), AbortReason.UNKNOWN),
        (BaseExceptionGroup("g", [asyncio.CancelledError(), ValueError()]), None),
        (ValueError(), None),
    ],
)
def test_cancellation_tells_why(exception, reason):
    assert cancellation(exception) is reason


BUILTIN_EXCEPTIONS = [
    cls
    for cls in vars(__import__("builtins")).values()
    if isinstance(cls, type)
    and issubclass(cls, BaseException)
    and not issubclass(cls, BaseExceptionGroup)
]


@given(
    st.sampled_from(BUILTIN_EXCEPTIONS),
    st.lists(st.one_of(st.text(), st.integers(), st.none(), st.binary()), max_size=5),
)
def test_classify_never_raises_and_is_always_in_the_taxonomy(cls, args):
    try:
        exception = cls(*args)
    except TypeError:
        return
    error = classify(exception, redact=lambda text: text)
    assert error.error_code == TAXONOMY[error.error_class].code
    error.model_dump_json().encode()


def test_the_standards_denied_example_is_reproduced_by_field():
    error = ToolError.of(ErrorClass.PERMISSION_DENIED)
    result = ToolResult(
        result_id="result_write_secret",
        invocation_id="inv_write_secret",
        status="denied",
        is_error=True,
        error=error,
        policy_refs=["policy:project-file-access"],
        created_at="2026-05-08T00:00:01Z",
    ).to_json_object()
    example = {
        "schema_version": "0.2.0",
        "result_id": "result_write_secret",
        "invocation_id": "inv_write_secret",
        "status": "denied",
        "is_error": True,
        "policy_refs": ["policy:project-file-access"],
        "created_at": "2026-05-08T00:00:01Z",
    }
    assert {name: result[name] for name in example} == example
    shown = {
        "error_class": "permission_denied",
        "recoverability": "change_arguments_or_policy",
        "retry_after": None,
    }
    assert {name: result["error"].get(name) for name in shown} == shown
    assert (
        classify(ToolDenied("no", error_class=ErrorClass.PERMISSION_DENIED)).error_class
        is error.error_class
    )


class Outer:
    class Written(ValueError):
        pass


def test_a_name_made_at_run_time_is_not_told():
    secret = "hunter2-kestrel"
    made = type(secret, (Outer.Written,), {"__module__": secret})
    disguised = type("Written", (OSError,), {"__qualname__": f"Outer.{secret}"})
    local = type(
        secret,
        (KeyError,),
        {"__qualname__": f"test_a_name_made_at_run_time_is_not_told.<locals>.{secret}"},
    )
    bases = {
        made: f"{__name__}.Outer.Written",
        disguised: "builtins.OSError",
        local: "builtins.KeyError",
    }
    for cls, base in bases.items():
        error = classify(cls("x"), redact=lambda text: text)
        assert error.native_error_ref == base
        assert secret not in error.model_dump_json()


def test_the_name_of_a_written_class_is_told():
    class Local(Exception):
        pass

    assert classify(Outer.Written()).native_error_ref == f"{__name__}.Outer.Written"
    assert classify(Local()).native_error_ref.endswith("is_told.<locals>.Local")
    assert classify(urllib.error.URLError("x")).native_error_ref == "urllib.error.URLError"
