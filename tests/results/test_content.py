"""Every return value has its content class, an envelope that validates, and views for model,
interface and search.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from pydantic import BaseModel

from agenttool_otel.names import ContentType
from agenttool_otel.records import ToolResult
from agenttool_otel.results.content.blocks import Block
from agenttool_otel.results.content.map_content import EMPTY_TEXT, map_content

SCHEMA = jsonschema_rs.validator_for(
    json.loads(
        (Path(__file__).parent.parent / "spec_schemas" / "agenttool-result.schema.json").read_text()
    )
)
PNG = bytes.fromhex("89504e470d0a1a0a") + b"\0" * 20
C = ContentType


@dataclass
class Row:
    a: int
    b: str


class Reply(BaseModel):
    x: int


def envelope(mapped):
    result = ToolResult(
        invocation_id="inv",
        status="succeeded",
        content=mapped.content,
        structured_content=mapped.structured_content,
        model_facing_content=mapped.model_facing,
        ui_facing_summary=mapped.ui_summary,
        transcript_search_text=mapped.transcript_text,
        resource_refs=mapped.resource_refs,
        artifact_refs=mapped.artifact_refs,
    )
    as_json = json.loads(json.dumps(result.to_json_object(), allow_nan=False))
    assert list(SCHEMA.iter_errors(as_json)) == []
    return ToolResult.from_json_object(as_json)


CASES = [
    ("text", lambda: "hello", [C.TEXT]),
    ("none", lambda: None, [C.TEXT]),
    ("empty text", lambda: "", [C.TEXT]),
    ("number", lambda: 5, [C.STRUCTURED_CONTENT]),
    ("dict", lambda: {"a": 1}, [C.STRUCTURED_CONTENT]),
    ("list", lambda: [1, 2], [C.STRUCTURED_CONTENT]),
    ("dataclass", lambda: Row(1, "x"), [C.STRUCTURED_CONTENT]),
    ("model", lambda: Reply(x=1), [C.STRUCTURED_CONTENT]),
    ("diff", lambda: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", [C.DIFF]),
    ("png", lambda: PNG, [C.IMAGE]),
    ("wav", lambda: b"RIFF\0\0\0\0WAVEfmt ", [C.AUDIO]),
    ("mp4", lambda: b"\0\0\0\x18ftypmp42" + b"\0" * 20, [C.VIDEO]),
    ("octets", lambda: b"\0\1\2", [C.FILE]),
    ("text bytes", lambda: b"hello", [C.TEXT]),
    ("path", lambda: Path("report.pdf"), [C.FILE]),
    ("log", lambda: Block.log("started"), [C.LOG]),
    (
        "artifact",
        lambda: Block.artifact("report-1", uri="artifact://report-1", digest="sha256:0"),
        [C.ARTIFACT_REF],
    ),
    ("handoff", lambda: Block.handoff("billing"), [C.HANDOFF_REF]),
    ("link", lambda: Block.resource_link("file:///x", name="x"), [C.RESOURCE_LINK]),
    ("embedded", lambda: Block.embedded_resource("file:///x", "text"), [C.EMBEDDED_RESOURCE]),
    (
        "persisted",
        lambda: {"type": "persisted_output_ref", "uri": "agent-runtime://x"},
        [C.PERSISTED_OUTPUT_REF],
    ),
    ("blocks", lambda: [Block.text("a"), Block.media(PNG, "image/png")], [C.TEXT, C.IMAGE]),
    (
        "mcp text",
        lambda: {"type": "text", "text": "x", "annotations": {"audience": ["user"]}},
        [C.TEXT],
    ),
    ("mcp image", lambda: [{"type": "image", "data": "AA==", "mimeType": "image/png"}], [C.IMAGE]),
    (
        "mcp resource",
        lambda: {"type": "resource", "resource": {"uri": "u", "text": "t"}},
        [C.EMBEDDED_RESOURCE],
    ),
    (
        "lc image url",
        lambda: {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        [C.IMAGE],
    ),
    (
        "lc file",
        lambda: {"type": "file", "base64": "AA==", "mime_type": "application/pdf"},
        [C.FILE],
    ),
    ("not a block", lambda: {"type": "text", "text": "x", "price": 3}, [C.STRUCTURED_CONTENT]),
    ("no block either", lambda: {"type": "file", "owner": "me"}, [C.STRUCTURED_CONTENT]),
    ("document", lambda: Document("body", metadata={"source": "a.txt"}), [C.EMBEDDED_RESOURCE]),
    ("documents", lambda: [Document("a"), Document("b")], [C.EMBEDDED_RESOURCE]),
    ("exception", lambda: ValueError("secret"), [C.LOG]),
    ("generator", lambda: (x for x in [1]), [C.STRUCTURED_CONTENT]),
    ("command", lambda: Command(goto="next"), [C.HANDOFF_REF]),
]


@pytest.mark.parametrize(
    ("make", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_content_class_valid_envelope_and_round_trip(make, expected):
    mapped = map_content(make())
    assert list(dict.fromkeys(C(block["type"]) for block in mapped.content)) == expected
    again = envelope(mapped)
    assert again.content == mapped.content
    assert mapped.model_facing
    assert mapped.ui_summary
    # Content that was mapped once maps to itself: nothing is wrapped a second time.
    twice = map_content(mapped.content)
    assert [block["type"] for block in twice.content] == [block["type"] for block in mapped.content]


def test_every_content_class_of_the_standard_is_reached():
    reached = {kind for _, _, kinds in CASES for kind in kinds}
    assert reached == set(ContentType)


@pytest.mark.covers(
    "transcript-text-is-the-tools", "empty-output-is-marked", "empty-text-is-marked"
)
def test_nothing_is_said_to_be_nothing():
    for value in (None, "", b""):
        mapped = map_content(value)
        assert mapped.content == [{"type": "text", "text": EMPTY_TEXT, "empty": True}]
        assert mapped.model_facing == [{"type": "text", "text": EMPTY_TEXT}]
        assert mapped.ui_summary == "no output"
        assert mapped.transcript_text == ""
    assert map_content([]).structured_content == []


@pytest.mark.covers("model-content-without-logs", "ui-summary-is-no-content")
def test_the_three_views_differ():
    mapped = map_content([Block.text("answer"), Block.log("debug line"), Block.artifact("a-1")])
    assert mapped.model_facing == [{"type": "text", "text": "answer"}]
    assert "debug line" in mapped.transcript_text
    assert "answer" not in mapped.ui_summary
    assert mapped.artifact_refs == [{"artifact_id": "a-1"}]


def test_a_tool_messages_artifact_is_not_for_the_model():
    message = ToolMessage("shown", artifact={"rows": ["hidden"]}, tool_call_id="c1", status="error")
    mapped = map_content(message)
    assert mapped.is_error
    assert "hidden" not in json.dumps(mapped.model_facing)
    assert mapped.artifact_refs[0]["artifact_id"] == "c1"


def test_mcp_results_keep_content_structure_and_error():
    value = {
        "content": [{"type": "text", "text": "t"}],
        "structuredContent": {"n": 1},
        "isError": True,
    }
    mapped = map_content(value)
    assert (mapped.is_error, mapped.structured_content) == (True, {"n": 1})

    class CallToolResult(BaseModel):
        content: list
        structured_content: dict | None = None
        is_error: bool = False

    CallToolResult.__module__ = "mcp.types"
    again = map_content(
        CallToolResult(content=value["content"], structured_content={"n": 1}, is_error=True)
    )
    assert (again.content, again.is_error, again.structured_content) == (
        mapped.content,
        True,
        {"n": 1},
    )
    assert map_content({"content": ["my own"], "other": 1}).structured_content == {
        "content": ["my own"],
        "other": 1,
    }


def test_a_process_gives_output_log_and_exit_code():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; print('out'); print('err', file=sys.stderr); sys.exit(2)",
        ],
        capture_output=True,
        check=False,
        timeout=30,
    )
    mapped = map_content(done)
    assert mapped.is_error
    assert mapped.structured_content == {"exit_code": 2}
    assert [block["type"] for block in mapped.content] == ["text", "log"]
    assert mapped.model_facing == [{"type": "text", "text": "out\n"}]


def test_an_exceptions_message_is_no_content():
    assert "secret" not in json.dumps(map_content(ValueError("secret")).content)


@pytest.mark.covers("large-binary-is-a-digest")
def test_binary_content_is_inline_when_small_else_a_digest():
    small, large = map_content(PNG), map_content(PNG + b"\0" * 300_000)
    assert small.content[0]["data"]
    assert small.model_facing[0]["type"] == "image"
    assert "data" not in large.content[0]
    assert large.content[0]["digest"].startswith("sha256:")
    assert large.model_facing[0]["type"] == "text"


def test_libraries_are_described_by_shape_and_first_rows():
    numpy, pandas, pyarrow = (pytest.importorskip(name) for name in ("numpy", "pandas", "pyarrow"))
    image = pytest.importorskip("PIL.Image")
    frame = map_content(pandas.DataFrame({"a": range(100), "b": ["x"] * 100}))
    assert frame.structured_content["total_rows"] == 100
    assert frame.structured_content["rows"][0] == [0, "x"]
    assert len(frame.structured_content["rows"]) == 20
    assert map_content(numpy.arange(6).reshape(2, 3)).structured_content["data"] == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    assert map_content(pyarrow.table({"a": [1, 2]})).structured_content["columns"] == ["a"]
    picture = map_content(image.new("RGB", (5, 4)))
    assert (picture.content[0]["type"], picture.content[0]["width"]) == ("image", 5)
    for mapped in (frame, picture):
        envelope(mapped)


def test_no_library_is_imported_for_it():
    code = (
        "import sys\n"
        "from agenttool_otel.results.content.map_content import map_content\n"
        "from agenttool_otel.results.content.size import size_of\n"
        "map_content({'a': object()}), size_of(object())\n"
        "names = ('pandas', 'numpy', 'pyarrow', 'PIL', 'langchain_core', 'mcp', 'obstore')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@given(st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(), st.text(st.characters()), st.binary(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "text", "data", "content", "uri", "resource", "isError", "image_url", "other"]),
            st.one_of(inner, st.sampled_from(["text", "image", "resource", "file"])),
            max_size=4,
        ),
    ),
    max_leaves=8,
))  # fmt: skip
def test_any_value_maps_to_a_valid_envelope(value):
    mapped = map_content(value)
    assert not [error for error in mapped.schema_errors if error.startswith("mapping")]
    envelope(mapped)
