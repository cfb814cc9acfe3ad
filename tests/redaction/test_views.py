"""Other readings of a text: each byte of a reading leads back to the bytes that it stands for."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.views.decoded import percent_view
from agenttool_otel.redaction.views.joined import joined_view
from agenttool_otel.redaction.views.views import View, normalised_view

_ODD = [
    "\u200b",
    "\u200c",
    "\ufeff",
    "\uff47",
    "\ufb01",
    "\u00bd",
    "\ud800",
    "\U000e0041",
    "e\u0301",
    "\u1100\u1161",
]
_texts = st.lists(
    st.one_of(st.sampled_from([*_ODD, "a", "7 ", "\u00e9", "\u4e2d"]), st.characters()), max_size=40
)


def _origins(view: View) -> list[tuple[int, int]]:
    spans = [view.source(Span(at, at + 1, "", "")) for at in range(len(view.data))]
    return [(span.start, span.end) for span in spans]


@given(_texts.map("".join), st.sampled_from([0, 2040, 2047, 2048, 5000]))
def test_a_folded_character_leads_back_to_the_whole_one(text: str, before: int) -> None:
    text = ("a\u200b" * before)[:before] + text
    view = normalised_view(text)
    if view is None:
        return
    made, origins, start = [], [], 0
    for char in text:
        raw = char.encode("utf-8", "surrogatepass")
        alone = normalised_view(char + "a")
        plain = raw if alone is None else alone.data[:-1]
        assert plain in (b"", unicodedata.normalize("NFKC", char).encode("utf-8", "surrogatepass"))
        made.append(plain)
        origins.extend([(start, start + len(raw))] * len(plain))
        start += len(raw)
    assert view.data == b"".join(made)
    assert _origins(view) == origins


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("to\u200bken", "token"),
        ("\uff47\uff48\uff50", "ghp"),
        ("\ufb01x\u00ad", "fix"),
        ("e\u0301\ufeff", "e\u0301"),
    ],
)
def test_what_people_read_is_what_detectors_see(text: str, plain: str) -> None:
    view = normalised_view(text)
    assert view is not None
    assert view.data.decode() == plain


@given(
    st.lists(st.sampled_from([b"%41", b"%", b"%4", b"a", b"%C3%A9", b"\n"]), max_size=20).map(
        b"".join
    )
)
def test_a_percent_encoded_byte_leads_back_to_its_three(data: bytes) -> None:
    view = percent_view(data)
    parts = re.findall(rb"%[0-9A-Fa-f]{2}|.", data, re.DOTALL)
    if view is None:
        assert all(len(part) == 1 for part in parts)
        return
    assert view.data == b"".join(
        bytes.fromhex(part[1:].decode()) if len(part) == 3 else part for part in parts
    )
    assert [data[first:last] for first, last in _origins(view)] == parts


@given(
    st.lists(st.sampled_from([b"\n", b"\\n", b"\r\n", b"  ", b"a", b"b1", b"> "]), max_size=20).map(
        b"".join
    )
)
def test_joined_lines_lead_back_to_their_own_bytes(data: bytes) -> None:
    view = joined_view(data)
    if view is None:
        return
    assert b"\n" not in view.data
    assert b"".join(data[first:last] for first, last in _origins(view)) == view.data
    whole = Span(0, len(view.data), "", "")
    source = view.source(whole)
    assert view.changed(whole) == (view.data != data[source.start : source.end])


@pytest.mark.parametrize("text", ["plain", "caf\u00e9", ""])
def test_a_text_that_reads_the_same_has_no_other_reading(text: str) -> None:
    assert normalised_view(text) is None
    assert percent_view(text.encode()) is None
    assert joined_view(text.encode()) is None
