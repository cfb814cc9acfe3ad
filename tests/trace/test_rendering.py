"""What a person reads in the terminal, and that a hostile trace can't write to it."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import replace
from enum import StrEnum

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from rich.console import Console
from spans_made import ALLOWED, DENIED, MESSAGE, make

from agenttool_otel.cli import story
from agenttool_otel.cli.plain_text import clean, duration_text, size_text
from agenttool_otel.cli.rendering import render_summary, render_tree
from agenttool_otel.cli.spans import SpanView, TraceFormatError, spans_from_document
from agenttool_otel.cli.story import why
from agenttool_otel.names import (
    ApprovalStatus,
    Attr,
    Behavior,
    DecisionSource,
    FailClosedCause,
    GenAI,
    PersistenceStrategy,
    Recoverability,
)
from agenttool_otel.names.advice import ADVICE


@pytest.fixture(scope="module")
def spans() -> list[SpanView]:
    return [SpanView.from_sdk(span) for span in make()]


def text_of(renderable: object, width: int = 160) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor"
    )
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def plain(renderable: object, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def view(attributes: dict[str, object], **changes: object) -> SpanView:
    base = SpanView(
        "execute_tool t",
        "0" * 31 + "1",
        "0" * 15 + "1",
        None,
        1_000_000_000,
        1_002_000_000,
        attributes,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_tree_shows_each_fact_of_a_call(spans: list[SpanView]) -> None:
    tree = plain(render_tree(spans))
    lines = tree.splitlines()
    assert "shop" in lines[0]
    (denied,) = [line for line in lines if "read_file" in line]
    assert "✗" in denied
    assert "deny · did not run" in denied
    assert "paths.outside_roots" in denied
    assert "1.0 ms" in denied
    assert "permission_denied" in denied
    assert f"why: {MESSAGE}" in tree
    assert "approval: consumed after 3 min 20 s" in tree
    assert "redaction: redacted ×2" in tree
    assert "result: 1.2 MB · preview_and_persist" in tree
    (allowed,) = [line for line in lines if "execute_tool search" in line]
    assert "(cached)" in allowed


def test_children_are_drawn_below_their_parents(spans: list[SpanView]) -> None:
    lines = plain(render_tree(spans)).splitlines()
    indent = {
        word: next(line.index(word) for line in lines if word in line)
        for word in ("invoke_agent", "read_file")
    }
    assert indent["read_file"] > indent["invoke_agent"]


def test_events_are_listed_on_request_with_their_time(spans: list[SpanView]) -> None:
    assert "tool.permission.decided" not in plain(render_tree(spans))
    assert "+400 µs tool.permission.decided" in plain(render_tree(spans, events=True))


def test_each_behaviour_has_a_colour_of_its_own(spans: list[SpanView]) -> None:
    styles = dict(re.findall(r"\x1b\[([\d;]+)m([✓?✗]) ", text_of(render_tree(spans))))
    assert sorted(styles.values()) == sorted("✓?✗")


def test_the_summary_counts_per_tool(spans: list[SpanView]) -> None:
    rows = [line.split("│") for line in plain(render_summary(spans)).splitlines() if "│" in line]
    cells = {row[1].strip(): [cell.strip() for cell in row[2:-1]] for row in rows}
    assert cells["read_file"] == ["1", "0", "0", "1", "0", "0", "210 B", "1.0 ms"]
    assert cells["send_mail"] == ["1", "0", "1", "0", "0", "2", "1.2 MB", "3 min 20 s"]
    assert cells["all"][:4] == ["3", "1", "1", "1"]
    assert "invoke_agent" not in "".join(cells)


def test_the_story_of_a_denial(spans: list[SpanView]) -> None:
    denied = next(span for span in spans if "read_file" in span.name)
    assert why(denied).splitlines() == [
        "agent:support called the tool read_file (local.files, risk low) in session s-1.",
        "The invocation is inv_1.",
        "The policy (engine embedded, revision abc) denied it in 400 µs.",
        f"The deciding rule was paths.outside_roots: {MESSAGE}",
        "Other rules that fired: roles.reader.",
        "The tool did not run.",
        "The result has 210 B.",
        "The caller received permission_denied (AT-106). A retry needs other arguments or another policy.",
    ]


def test_the_story_of_an_approval_that_was_used_before(spans: list[SpanView]) -> None:
    asked = next(span for span in spans if "send_mail" in span.name)
    again = replace(asked, attributes={**asked.attributes, Attr.PERMISSION_OUTCOME: "not_executed"})
    story = why(again)
    assert "is used up: it covers one run." in story
    assert "for this run" not in story
    assert "The tool did not run." in story


def test_the_story_of_an_approval(spans: list[SpanView]) -> None:
    asked = next(span for span in spans if "send_mail" in span.name)
    story = why(asked)
    assert "The request appr_1 was approved after 3 min 20 s and used for this run." in story
    assert "The tool ran" in story
    assert "ending with status succeeded" in story
    assert "On the way its input was changed by hook: /to." in story
    assert "2 findings were redacted before anything left the process." in story
    assert "stored, with a preview given" in story


@pytest.mark.parametrize("cause", list(FailClosedCause))
def test_every_fail_closed_cause_has_a_sentence(cause: FailClosedCause) -> None:
    told = why(
        view({**DENIED, Attr.PERMISSION_SOURCE: "error", Attr.PERMISSION_FAIL_CLOSED: cause.value})
    )
    assert "The fail-closed rule denied it" in told
    (sentence,) = [line for line in told.splitlines() if line.startswith("It was denied because")]
    assert "without a decision nothing runs" in sentence
    assert cause.value not in sentence.split() or cause.value in {
        "timeout",
        "internal",
        "unavailable",
    }


@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_every_approval_status_has_a_sentence(status: ApprovalStatus) -> None:
    told = why(
        view({**ALLOWED, Attr.PERMISSION_BEHAVIOR: "ask", Attr.APPROVAL_STATUS: status.value})
    )
    assert "is in state" not in told
    assert "The request" in told


@pytest.mark.parametrize(
    ("sentences", "words"),
    [
        (story.CAUSES, set(FailClosedCause)),
        # nothing can be advised where it is not known whether a retry helps
        (story.ADVICE, set(Recoverability) - {Recoverability.UNKNOWN}),
        # a policy that passes the question on leaves no decision
        (story.VERBS, set(Behavior) - {Behavior.PASSTHROUGH}),
        (story.KEPT, set(PersistenceStrategy)),
    ],
)
def test_each_word_has_its_sentence(sentences: dict[str, str], words: set[StrEnum]) -> None:
    assert set(sentences) == words


def test_only_the_policy_as_decider_has_a_sentence_of_its_own() -> None:
    assert set(story.DECIDERS) == set(DecisionSource) - {DecisionSource.POLICY}


def test_a_longer_name_of_a_rule_stands_before_its_beginning() -> None:
    starts = list(ADVICE)
    for number, start in enumerate(starts):
        hidden = [later for later in starts[number + 1 :] if later.startswith(start)]
        assert hidden == [], start


def test_the_open_question_comes_with_its_answer() -> None:
    rules = [Attr.PERMISSION_RULES, Attr.PERMISSION_OPEN_QUESTIONS]
    told = why(view({**DENIED, rules[0]: ["acme.a", "acme.b"], rules[1]: ["acme.b"]}))
    assert "The open question was acme.b; it would be answered by its name in waives" in told
    assert "Other rules that fired: acme.a." in told


def test_a_timeout_is_never_told_as_a_refusal() -> None:
    told = why(view({**DENIED, Attr.PERMISSION_SOURCE: "timeout", Attr.APPROVAL_STATUS: "expired"}))
    assert "A passed deadline denied it" in told
    assert "which is nobody's refusal" in told


def test_a_shadow_difference_is_told_in_tree_and_story() -> None:
    span = view(
        {
            **ALLOWED,
            Attr.PERMISSION_SHADOW_BEHAVIOR: "deny",
            Attr.PERMISSION_SHADOW_RULE: "network.unknown",
        }
    )
    assert "shadow would decide deny (rule network.unknown)" in plain(render_tree([span]))
    assert "would have decided deny by rule network.unknown" in why(span)


def test_a_call_that_failed_before_any_decision_says_so() -> None:
    told = why(
        view(
            {GenAI.OPERATION_NAME: "execute_tool", GenAI.ERROR_TYPE: "unknown_tool"}, status="error"
        )
    )
    assert "It ended before anything was decided: unknown_tool." in told


def test_another_span_has_no_story() -> None:
    assert "is not a governed tool call" in why(view({}))


def test_an_open_span_is_shown_as_open() -> None:
    assert "open" in plain(render_tree([view(ALLOWED, end_ns=None)]))


# --- hostile traces -------------------------------------------------------------------------------


@given(st.text(max_size=60))
def test_no_text_of_a_trace_reaches_the_terminal_as_a_control(text: str) -> None:
    span = view(
        {
            **DENIED,
            GenAI.TOOL_NAME: text,
            Attr.PERMISSION_RULE: text,
            Attr.PERMISSION_REASON_MESSAGE: text,
        },
        name=text,
        trace_id=text,
        resource={"service.name": text},
    )
    for shown in (
        plain(render_tree([span], events=True)),
        plain(render_summary([span])),
        why(span),
    ):
        assert not any(
            (ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160 for char in shown
        )
        assert "\u202e" not in shown


def test_escape_sequences_are_shown_and_markup_is_not_read() -> None:
    span = view({**DENIED, Attr.PERMISSION_RULE: "\x1b]0;owned\x07[bold]x[/bold]\u202e"})
    shown = plain(render_tree([span]))
    assert r"\x1b]0;owned\x07[bold]x[/bold]\u202e" in shown


def test_a_trace_whose_parents_form_a_circle_is_shown_whole() -> None:
    one = view(ALLOWED, span_id="a" * 16, parent_id="b" * 16, name="one")
    two = view(ALLOWED, span_id="b" * 16, parent_id="a" * 16, name="two")
    own = view(ALLOWED, span_id="c" * 16, parent_id="c" * 16, name="own")
    shown = plain(render_tree([one, two, own]))
    assert all(shown.count(f"{name}  allow") == 1 for name in ("one", "two", "own"))


def test_a_deep_trace_is_drawn_whole() -> None:
    chain = [
        view(
            ALLOWED,
            span_id=f"{n:016x}",
            parent_id=f"{n - 1:016x}" if n else None,
            name=f"level-{n}",
        )
        for n in range(200)
    ]
    assert "level-199" in plain(render_tree(chain), width=2000)


# --- formats --------------------------------------------------------------------------------------


def test_otlp_json_gives_the_same_views_as_the_sdk(spans: list[SpanView]) -> None:
    document = MessageToDict(encode_spans(make()))  # protobuf's JSON: ids in base64
    from_json = {span.name: span for span in spans_from_document(json.loads(json.dumps(document)))}
    for span in spans:
        other = from_json[span.name]
        assert (other.start_ns, other.end_ns, other.status) == (
            span.start_ns,
            span.end_ns,
            span.status,
        )
        assert [e.name for e in other.events] == [e.name for e in span.events]
        assert dict(other.attributes) == {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in span.attributes.items()
        }
        assert other.resource["service.name"] == "shop"
        assert len(other.trace_id) == 32
        assert len(other.span_id) == 16


def test_hexadecimal_ids_are_read_as_they_are() -> None:
    span = {"traceId": "AB" * 16, "spanId": "cd" * 8, "startTimeUnixNano": "5", "name": "x"}
    (read,) = spans_from_document({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert (read.trace_id, read.span_id, read.end_ns) == ("ab" * 16, "cd" * 8, None)


def test_jaeger_json_is_read() -> None:
    trace = {
        "spans": [
            {
                "traceID": "1" * 32,
                "spanID": "2" * 16,
                "processID": "p1",
                "operationName": "execute_tool read_file",
                "references": [{"refType": "CHILD_OF", "spanID": "3" * 16}],
                "startTime": 5,
                "duration": 7,
                "tags": [
                    {"key": Attr.PERMISSION_BEHAVIOR, "type": "string", "value": "deny"},
                    {"key": "otel.status_code", "type": "string", "value": "ERROR"},
                    {"key": "error", "type": "bool", "value": True},
                ],
                "logs": [
                    {
                        "timestamp": 6,
                        "fields": [{"key": "event", "value": "tool.permission.decided"}],
                    }
                ],
            }
        ],
        "processes": {"p1": {"serviceName": "shop", "tags": []}},
    }
    (span,) = spans_from_document({"data": [trace]})
    assert (span.start_ns, span.end_ns, span.parent_id, span.status) == (
        5_000,
        12_000,
        "3" * 16,
        "error",
    )
    assert span.events[0].name == "tool.permission.decided"
    assert span.attributes == {Attr.PERMISSION_BEHAVIOR: Behavior.DENY}


@pytest.mark.parametrize(
    "document",
    [
        3,
        {},
        {"resourceSpans": 5},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]},
        {
            "resourceSpans": [
                {
                    "scopeSpans": [
                        {"spans": [{"traceId": "zz", "spanId": "1", "startTimeUnixNano": 1}]}
                    ]
                }
            ]
        },
        {"data": [{"spans": [{}]}]},
        {"data": 7},
        {
            "resourceSpans": [
                {"scopeSpans": [{"spans": [{"traceId": "a" * 32, "spanId": "b" * 16}]}]}
            ]
        },
    ],
)
def test_what_is_no_trace_is_refused_with_a_typed_error(document: object) -> None:
    with pytest.raises(TraceFormatError):
        spans_from_document(document)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "resourceSpans",
                    "scopeSpans",
                    "spans",
                    "attributes",
                    "data",
                    "trace",
                    "key",
                    "value",
                    "x",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_either_read_or_refused(document: object) -> None:
    with contextlib.suppress(TraceFormatError):
        spans_from_document(document)


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"),
        (0.00085, "850 µs"),
        (0.0123, "12.3 ms"),
        (4.2, "4.2 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1200, "1.2 kB"), (5_000_000, "5.0 MB")]
)
def test_sizes_read_well(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_stated_wait_wins_over_the_events() -> None:
    assert view({Attr.APPROVAL_WAIT: 2.5}).approval_wait == 2.5
    assert view({}).approval_wait is None


def test_long_text_is_cut() -> None:
    assert clean("a" * 500, limit=10) == "a" * 9 + "…"
