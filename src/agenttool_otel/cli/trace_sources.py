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


class TraceUnavailable(RuntimeError):
    """The spans can't be had; the message says why, without anything that the server said."""


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
    # further HTTP headers, for servers that want to be told who asks
    headers: Mapping[str, str] = field(default_factory=dict)


def read_file(source: Path | TextIO) -> list[SpanView]:
    """Read OTLP JSON: one document, or one a line as the Collector's file exporter writes them."""
    try:
        text = source.read_text("utf-8") if isinstance(source, Path) else source.read()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceUnavailable(f"the file can't be read: {type(error).__name__}") from error
    try:
        return spans_from_document(_parsed(text))
    except json.JSONDecodeError:
        documents = [
            _parsed_line(number, line)
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
    # a Collector that exports metrics and logs to the same file is no reason to refuse its traces
    return spans_from_document(
        [item for item in documents if not {"resourceMetrics", "resourceLogs"} & _keys(item)]
    )


def _keys(document: Any) -> set[str]:
    return set(document) if isinstance(document, dict) else set()


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
            f"line {number} is not JSON: an OTLP file is wanted, as agenttool demo --save or a Collector's file"
            " exporter writes it; what the console exporter prints is none"
        ) from error


def read_url(url: str, question: Question, backend: Backend = "auto") -> list[SpanView]:
    """Ask Jaeger or Tempo."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise TraceUnavailable("the source is neither a file nor an http(s) URL")
    if question.trace_id and not (set(question.trace_id) <= _HEX and len(question.trace_id) <= 32):
        raise TraceUnavailable("a trace id has up to 32 hexadecimal digits")
    if "/traces/" in parts.path:
        return spans_from_document(_get(url, question))
    base = url.rstrip("/")
    if backend == "auto":
        backend = _recognised(base, question)
    return _jaeger(base, question) if backend == "jaeger" else _tempo(base, question)


def _recognised(base: str, question: Question) -> Backend:
    try:
        answer = _get(f"{base}/api/services", question)
    except TraceFormatError:
        return "tempo"
    except TraceUnavailable as error:
        if isinstance(error.__cause__, urllib.error.HTTPError):
            return "tempo"
        raise
    return "jaeger" if isinstance(answer, dict) and "data" in answer else "tempo"


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
        raise TraceUnavailable(f"say which --service: there are {len(services)}")
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
    found = _get(f"{base}/api/search?{urllib.parse.urlencode(query)}", question)
    ids = [str(item["traceID"]) for item in (found or {}).get("traces") or []]
    if any(not set(item) <= _HEX for item in ids):
        raise TraceFormatError("the server named a trace by something that is no id")
    # Tempo drops leading zeros in search answers, and pads them itself when asked for a trace
    return [
        span
        for item in ids
        for span in spans_from_document(_get(f"{base}/api/v2/traces/{item}", question))
    ]


def _quoted(value: str) -> str:
    """A TraceQL string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same origin only: headers that name the asker must not travel
    elsewhere.
    """

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
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
        known = {
            404: "there is no such trace",
            401: "the server wants --header",
            403: "the server refuses",
        }
        raise TraceUnavailable(
            known.get(error.code, f"the server answered {error.code}")
        ) from error
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
