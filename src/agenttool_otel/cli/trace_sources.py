"""Where ``agenttool trace`` gets its spans: an OTLP JSON file, Jaeger's query API, or
Tempo's API.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TextIO

from agenttool_otel.cli.spans import SpanView, TraceFormatError, spans_from_document
from agenttool_otel.names import OPERATION_EXECUTE_TOOL, GenAI

Backend = Literal["auto", "jaeger", "tempo"]

MAX_BYTES: Final = 256 * 1024 * 1024
_TIMEOUT: Final = 20.0
_HEX: Final = frozenset("0123456789abcdefABCDEF")


_HTTP_PROBLEMS: Final = {
    401: "the server needs a --header with credentials",
    403: "the server refuses",
    404: "there is no such trace",
}


class TraceUnavailable(RuntimeError):
    """The spans can't be had; the message gives the reason, without any text of the server."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which traces are wanted."""

    trace_id: str = ""  # one trace, or an empty string for a search
    # service to search in; Jaeger needs one, and the only one there is taken where none is given
    service: str = ""
    # span attributes that a tool call must have, with their exact values
    tags: Mapping[str, str] = field(default_factory=dict)
    hours: float = 24.0  # how far back to search
    limit: int = 20  # most traces to fetch
    # further HTTP headers, such as Authorization
    headers: Mapping[str, str] = field(default_factory=dict)


def read_file(source: Path | TextIO) -> list[SpanView]:
    """Read OTLP JSON: one document, or one a line as the Collector's file exporter writes them.

    Raises:
        TraceUnavailable: The file can't be read.
        TraceFormatError: It is not OTLP JSON.
    """
    text = _text_of(source)
    try:
        return spans_from_document(_parsed(text))
    except json.JSONDecodeError:
        pass  # not one document: one a line
    spans: list[SpanView] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        document = _parsed_line(number, line)
        if not _is_other_signal(document):
            spans.extend(spans_from_document(document))
    return spans


def _text_of(source: Path | TextIO) -> str:
    try:
        if isinstance(source, Path):
            return source.read_text("utf-8")
        return source.read()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceUnavailable(f"the file can't be read: {type(error).__name__}") from error


def _is_other_signal(document: Any) -> bool:
    # a Collector may export metrics and logs to the same file: {"resourceMetrics": [...]}
    if not isinstance(document, dict):
        return False
    return "resourceMetrics" in document or "resourceLogs" in document


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise TraceFormatError("the document is nested too deeply") from error


def _parsed_line(number: int, line: str) -> Any:
    try:
        return _parsed(line)
    except json.JSONDecodeError as error:
        raise TraceFormatError(
            f"line {number} is not JSON: the file has to be OTLP JSON, as agenttool demo --save or a"
            " Collector's file exporter writes it; the output of the console exporter is not"
        ) from error


def read_url(url: str, question: Question, backend: Backend = "auto") -> list[SpanView]:
    """Ask Jaeger or Tempo."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise TraceUnavailable("the source is neither a file nor an http(s) URL")
    if not _HEX.issuperset(question.trace_id) or len(question.trace_id) > 32:
        raise TraceUnavailable("a trace id has up to 32 hexadecimal digits")
    if "/traces/" in parts.path:
        return spans_from_document(_get(url, question))
    base = url.rstrip("/")
    if backend == "auto":
        backend = _recognised(base, question)
    if backend == "jaeger":
        return _jaeger(base, question)
    return _tempo(base, question)


def _recognised(base: str, question: Question) -> Backend:
    """Which server answers: only Jaeger has ``/api/services``."""
    try:
        answer = _get(f"{base}/api/services", question)
    except TraceFormatError:
        return "tempo"
    except TraceUnavailable as error:
        if isinstance(error.__cause__, urllib.error.HTTPError):
            return "tempo"
        raise
    # {"data": ["shop"], "total": 1}
    if isinstance(answer, dict) and "data" in answer:
        return "jaeger"
    return "tempo"


def _jaeger(base: str, question: Question) -> list[SpanView]:
    if question.trace_id:
        return spans_from_document(_get(f"{base}/api/traces/{question.trace_id}", question))
    service = question.service or _only_service(base, question)
    now = int(time.time() * 1_000_000)
    query = {
        "service": service,
        "start": str(now - int(question.hours * 3_600_000_000)),
        "end": str(now),
        "limit": str(question.limit),
    }
    if question.tags:
        query["tags"] = json.dumps(dict(question.tags))
    return spans_from_document(_get(f"{base}/api/traces?{urllib.parse.urlencode(query)}", question))


def _only_service(base: str, question: Question) -> str:
    answer = _get(f"{base}/api/services", question)
    services = [name for name in (answer or {}).get("data") or [] if name != "jaeger"]
    if len(services) != 1:
        raise TraceUnavailable(f"--service is needed: there are {len(services)} services")
    return str(services[0])


def _tempo(base: str, question: Question) -> list[SpanView]:
    if question.trace_id:
        return spans_from_document(_get(f"{base}/api/v2/traces/{question.trace_id}", question))
    conditions = [f'span.{GenAI.OPERATION_NAME} = "{OPERATION_EXECUTE_TOOL}"']
    if question.service:
        conditions.append(f"resource.service.name = {_quoted(question.service)}")
    conditions += [f"span.{name} = {_quoted(value)}" for name, value in question.tags.items()]
    now = int(time.time())
    query = {
        "q": "{ " + " && ".join(conditions) + " }",
        "limit": str(question.limit),
        "start": str(now - int(question.hours * 3600)),
        "end": str(now),
    }
    answer = _get(f"{base}/api/search?{urllib.parse.urlencode(query)}", question) or {}
    ids = [str(trace["traceID"]) for trace in answer.get("traces") or []]
    # an id becomes part of the next URL: "../../admin" is not one
    if not all(_HEX.issuperset(trace_id) for trace_id in ids):
        raise TraceFormatError("the server's answer has a trace id that is not hexadecimal")
    spans: list[SpanView] = []
    # Tempo drops leading zeros in search answers, and pads them itself when asked for a trace
    for trace_id in ids:
        document = _get(f"{base}/api/v2/traces/{trace_id}", question)
        spans.extend(spans_from_document(document))
    return spans


def _quoted(value: str) -> str:
    """A TraceQL string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same origin only: ``Authorization`` must not travel elsewhere."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        old = urllib.parse.urlsplit(req.full_url)
        new = urllib.parse.urlsplit(newurl)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            raise TraceUnavailable("the server redirects to another origin")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _get(url: str, question: Question) -> Any:
    # the scheme was checked, and a redirect keeps its own
    opener = urllib.request.build_opener(_SameOrigin())
    headers = {"Accept": "application/json", **question.headers}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    try:
        with opener.open(request, timeout=_TIMEOUT) as answer:
            body = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        problem = _HTTP_PROBLEMS.get(error.code, f"the server answered {error.code}")
        raise TraceUnavailable(problem) from error
    except (OSError, ValueError) as error:
        raise TraceUnavailable(f"the server can't be reached: {type(error).__name__}") from error
    if len(body) > MAX_BYTES:
        raise TraceUnavailable(
            "the answer is larger than 256 MB: ask for fewer traces with --limit"
        )
    try:
        return _parsed(body.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TraceFormatError("the answer is not JSON") from error
