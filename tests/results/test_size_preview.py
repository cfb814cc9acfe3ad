"""Sizes without waste, media types by signature, previews cut where a reader would cut."""

from __future__ import annotations

import io
import json
import tracemalloc
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel.names import ContentType
from agenttool_otel.results.content.json_stream import json_pieces, json_text
from agenttool_otel.results.content.media import content_class, extension_of, is_text, sniff
from agenttool_otel.results.content.preview import PreviewBuilder, preview
from agenttool_otel.results.content.size import measure, size_of

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text(), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(st.text(st.characters()))
def test_text_counts_as_utf_8(text):
    assert size_of(text) == len(text.encode("utf-8", "surrogatepass"))


@given(JSON)
def test_structured_values_count_as_their_json(value):
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert "".join(json_pieces(value)) == expected
    if type(value) is str:
        expected = value
    assert size_of(value) == (0 if value is None else len(expected.encode()))


@given(JSON)
def test_a_transform_that_changes_nothing_changes_nothing(value):
    assert json.loads("".join(json_pieces(value, lambda part, pointer: part))) == value


def test_large_values_stream_the_same_with_and_without_batches():
    value = {
        "rows": [{"id": i, "t": "é" * (i % 50), "n": [i, None, {"x": (i,)}]} for i in range(3000)],
        "s": "x" * 200_000,
    }
    plain = "".join(json_pieces(value))
    assert json.loads(plain) == json.loads(json.dumps(value))
    pointers = []
    "".join(json_pieces(value, lambda part, pointer: pointers.append(pointer) or part))
    assert "/rows/0" in pointers
    assert "/rows/2999" in pointers


def test_a_transform_sees_the_key_of_each_part_of_a_large_object():
    value = {"filler": ["x" * 100] * 5000, "password": "hunt" + "er2"}

    def redact(part, pointer):
        return (
            {k: "[gone]" if k == "password" else v for k, v in part.items()}
            if isinstance(part, dict)
            else part
        )

    assert json.loads("".join(json_pieces(value, redact)))["password"] == "[gone]"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"abc", 3),
        (bytearray(b"ab"), 2),
        (memoryview(b"abcd"), 4),
        (None, 0),
        ("", 0),
        (5, 1),
        ({}, 2),
    ],
)
def test_simple_sizes(value, expected):
    assert size_of(value) == expected


def test_nobody_reads_iterators_and_files_for_their_size():
    items = iter([1, 2])
    file = io.BytesIO(b"abc")
    assert size_of(items) is None
    assert size_of(file) is None
    assert list(items) == [1, 2]
    assert file.tell() == 0
    assert size_of(object()) is not None or measure(object()).exact is False


def test_libraries_say_what_they_hold():
    numpy, pandas, pyarrow = (pytest.importorskip(name) for name in ("numpy", "pandas", "pyarrow"))
    assert size_of(numpy.zeros(1000)) == 8000
    assert size_of(pandas.DataFrame({"a": numpy.zeros(1000)})) == 8000
    assert size_of(pyarrow.table({"a": numpy.zeros(1000)})) == 8000
    assert measure(numpy.zeros(3)).exact is False


@pytest.mark.parametrize("text", ["x" * 200_000_000, "é" * 60_000_000], ids=["ascii", "unicode"])
def test_hundreds_of_megabytes_are_measured_without_a_copy(text):
    tracemalloc.start()
    try:
        assert size_of(text) >= 120_000_000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_container_is_counted_up_to_a_bound_only():
    size = measure(["x" * 1000] * 100_000, limit=50_000)
    assert size.exact is False
    assert 50_000 < size.bytes < 500_000
    assert json_text(["x" * 1000] * 100, max_chars=1000) is None


# --- media ----------------------------------------------------------------------------------------


def _image(fmt):
    image = pytest.importorskip("PIL.Image")
    target = io.BytesIO()
    image.new("RGB", (4, 4)).save(target, fmt)
    return target.getvalue()


@pytest.mark.parametrize(
    ("fmt", "expected"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("WEBP", "image/webp"),
        ("BMP", "image/bmp"),
        ("TIFF", "image/tiff"),
    ],
)
def test_real_images_are_recognised(fmt, expected):
    assert sniff(_image(fmt)) == expected
    assert content_class(expected) is ContentType.IMAGE


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"%PDF-1.7\n", "application/pdf"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"ID3\x04\0", "audio/mpeg"),
        (b"BMW makes cars", "text/plain"),
        ("grüße".encode(), "text/plain"),
        ("grüße".encode()[:3], "text/plain"),
        (b"", "text/plain"),
        (b"<!DOCTYPE html><p>", "text/html"),
        (b"<svg xmlns='x'>", "image/svg+xml"),
        (b"a\0b", "application/octet-stream"),
        (b"\xff\xfe\xfd", "application/octet-stream"),
    ],
)
def test_media_types(head, expected):
    assert sniff(head) == expected


def test_extensions():
    assert extension_of("text/plain") == ".txt"
    assert extension_of("text/plain; charset=utf-8") == ".txt"
    assert extension_of("x/y") == ".bin"
    assert extension_of("image/png") == ".png"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])), st.integers(0, 200))
def test_text_cut_anywhere_is_still_text(text, end):
    assert is_text(text.encode()[:end])


# --- previews -------------------------------------------------------------------------------------


@given(st.text(), st.integers(0, 500), st.lists(st.integers(1, 50), max_size=20))
def test_a_preview_is_bounded_and_the_same_for_any_pieces(text, limit, cuts):
    found = preview(text, limit)
    assert len(found.text) <= max(limit, 0)
    assert found.chars == len(text)
    if len(text) <= limit:
        assert found.text == text
        assert found.omitted_chars == 0
    else:
        assert found.omitted_chars > 0
    builder = PreviewBuilder(limit)
    rest = text
    for cut in cuts:
        builder.add(rest[:cut])
        rest = rest[cut:]
    builder.add(rest)
    assert builder.build() == found


@given(st.text(st.characters(codec="utf-8"), min_size=300), st.integers(150, 250))
def test_head_and_tail_are_the_texts_own_and_the_count_is_right(text, limit):
    text = text.replace("[...", "")
    found = preview(text, limit)
    if not found.omitted_chars:
        return
    head, _, rest = found.text.partition("[... ")
    note, _, tail = rest.partition("omitted ...]\n")
    # the line break before the note is the text's own where the text has one there, and else the
    # note's
    kept = head if text.startswith(head) else head.removesuffix("\n")
    assert text.startswith(kept)
    assert text.endswith(tail)
    assert found.omitted_chars == len(text) - len(kept) - len(tail)
    assert found.omitted_lines == text.count("\n") - kept.count("\n") - tail.count("\n")
    assert f"{found.omitted_chars} characters, {found.omitted_lines} lines" in note


@pytest.mark.parametrize("after", ["0" * 240, "\u0301" + "0" * 239], ids=["text", "combining mark"])
@pytest.mark.parametrize("line", [58, 59, 60])
def test_a_shown_line_break_is_not_counted_as_omitted(line, after):
    text = "0" * line + "\n" + after
    found = preview(text, 169)  # room for 59 characters of head and 30 of tail
    head = text[: min(line + 1, 60)] if line < 60 else text[:59]
    shown = head if head.endswith("\n") else head + "\n"
    omitted = len(text) - len(head) - 30
    lines = 1 - head.count("\n")
    assert found.text == f"{shown}[... {omitted} characters, {lines} lines omitted ...]\n{'0' * 30}"
    assert (found.omitted_chars, found.omitted_lines) == (omitted, lines)


def test_cuts_fall_on_line_ends_where_there_are_lines():
    text = "".join(f"line {i} of a long file\n" for i in range(500))
    found = preview(text, 1000)
    head, _, tail = found.text.partition("[... ")
    assert head.endswith("\n")
    assert all(line in text for line in head.splitlines())
    assert tail.partition("]\n")[2].startswith("line ")
    assert found.lines == 500
    assert found.omitted_lines + head.count("\n") + tail.partition("]\n")[2].count("\n") == 500


@pytest.mark.parametrize(
    "cluster",
    ["e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "👍🏽", "ก็", "❤\ufe0f", "\r\n"],
    ids=lambda c: unicodedata.name(c[0], "cr"),
)
@pytest.mark.parametrize("limit", range(200, 212))
def test_a_character_as_people_see_it_is_never_cut(cluster, limit):
    text = cluster * 400
    found = preview(text, limit)
    head, _, rest = found.text.partition("[... ")
    tail = rest.partition("]\n")[2]
    head = head if cluster == "\r\n" else head.removesuffix("\n")
    assert head.replace(cluster, "") in ("", "\n")
    assert tail.replace(cluster, "") == ""


def test_a_million_tiny_pieces_cost_little():
    builder = PreviewBuilder(50_000)
    for _ in range(200_000):
        builder.add("ab\n")
    assert builder.build().lines == 200_000
