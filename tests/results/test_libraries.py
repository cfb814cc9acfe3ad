"""Objects of libraries: what a model gets of them is true, at every depth, and what is redacted
keeps its type.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pydantic import BaseModel, ConfigDict

from agenttool_otel.results.content.json_stream import json_text
from agenttool_otel.results.content.map_content import map_content
from agenttool_otel.results.content.shown import shown_json
from agenttool_otel.results.persistence.source import source_of
from agenttool_otel.testing import StaticEngine, capture

EMAIL = "ada.lovelace@" + "analytical-engines.net"


@dataclasses.dataclass(frozen=True)
class Held:
    it: Any


class Row(NamedTuple):
    name: Any
    it: Any


class Report(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    it: Any


class Attrs:
    """As attrs makes classes: the fields are listed, the values are in slots."""

    __slots__ = ("it",)
    __attrs_attrs__ = (types.SimpleNamespace(name="it"),)

    def __init__(self, it: Any) -> None:
        self.it = it


NESTED: dict[str, Callable[[Any], Any]] = {
    "dict": lambda it: {"it": it},
    "list": lambda it: [it, "and a word"],
    "tuple": lambda it: (1, it),
    "dataclass": Held,
    "model": lambda it: Report(it=it),
    "named tuple": lambda it: Row("x", it),
    "attrs class": Attrs,
    "namespace": lambda it: types.SimpleNamespace(it=it),
    "object array": lambda it: _boxed(it),
    "cell of a frame": lambda it: pd.DataFrame({"cell": pd.Series([it], dtype=object)}),
    "deep": lambda it: Held([{"a": Report(it=(it,))}]),
}


def _boxed(it: Any) -> Any:
    array = np.empty(1, dtype=object)
    array[0] = it
    return array


SALES = pd.DataFrame(
    {"region": ["north", "south", "south"], "year": [25, 25, 26], "sum": [10, 20, 30]}
)
MISSING: dict[str, Any] = {
    "NaT": pd.NaT,
    "pd.NA": pd.NA,
    "nan": float("nan"),
    "np.float32": np.float32("nan"),
    "datetime64": np.datetime64("NaT"),
    "timedelta64": np.timedelta64("NaT", "ns"),
    "masked": np.ma.masked,
    "None": None,
    "arrow scalar": pa.scalar(None, pa.int64()),
}
OBJECTS: dict[str, Any] = {
    "frame": SALES,
    "grouped": SALES.groupby(["region", "year"])["sum"].agg(["min", "max"]),
    "series": SALES.groupby("region")["sum"].sum(),
    "index": pd.Index(["north", "south"]),
    "levels": pd.MultiIndex.from_tuples([("north", 1)], names=["region", "n"]),
    "array": np.array([["north", "south"]]),
    "structured": np.array([("north", 1)], dtype=[("region", "U5"), ("n", "i4")]),
    "times": np.array(["2026-01-02", "NaT"], dtype="datetime64[ns]"),
    "table": pa.table(SALES),
    "arrow": pa.array(["north", None]),
    "chunked": pa.chunked_array([["north"], [None]]),
    "extension": pd.array([1, None], dtype="Int64"),
    "categories": pd.Series(["north"], dtype="category", index=[7]),
    "period": pd.Period("2026-01"),
    "interval": pd.Interval(0, 1),
    "zero": np.array(5),
    "longdouble": np.longdouble(1.5),
    "nanoseconds": np.datetime64("2026-01-02T03:04:05.123456789"),
}


def shown(value: Any) -> Any:
    [block] = [block for block in map_content(value).model_facing if block["type"] == "text"]
    return json.loads(block["text"])


@pytest.mark.parametrize("around", NESTED)
@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_null_at_every_depth(name: str, around: str) -> None:
    for text in (
        json.dumps(shown(NESTED[around](MISSING[name]))),
        json_text(NESTED[around](MISSING[name]), max_chars=999),
    ):
        assert "null" in str(text)
        assert not any(word in str(text) for word in ("0001", "$float", "$type", "$error", "NaT"))


@pytest.mark.parametrize("around", NESTED)
@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_inside_another_is_shown_as_alone(name: str, around: str) -> None:
    alone = json.dumps(shown_json(OBJECTS[name]))
    assert "$" not in alone
    assert alone in json.dumps(shown(NESTED[around](OBJECTS[name])))
    kept = json_text(NESTED[around](OBJECTS[name]), max_chars=10_000)
    assert json.dumps(shown_json(OBJECTS[name]), separators=(",", ":")) in str(kept)


def test_labels_of_rows_are_columns() -> None:
    data = shown(OBJECTS["grouped"])
    assert data["columns"] == ["region", "year", "min", "max"]
    assert data["rows"] == [["north", 25, 10, 10], ["south", 25, 20, 20], ["south", 26, 30, 30]]
    assert data["index"] == ["region", "year"]


@pytest.mark.parametrize(
    "frame",
    [SALES[1:], SALES.set_index("year"), SALES.rename_axis("n")],
    ids=["cut", "set", "named"],
)
def test_only_a_plain_count_of_rows_is_left_out(frame: Any) -> None:
    assert "index" in shown(frame)
    assert len(shown(frame)["rows"][0]) == len(shown(frame)["columns"])
    assert "index" not in shown(frame.reset_index(drop=True))


def test_several_levels_of_columns_and_their_names_are_kept() -> None:
    frame = SALES.pivot_table(index="region", columns="year", values=["sum"], aggfunc="sum")
    data = shown(frame)
    assert data["columns"] == ["region", ["sum", 25], ["sum", 26]]
    assert data["column_levels"] == [None, "year"]
    assert data["rows"] == [["north", 10.0, None], ["south", 20.0, 30.0]]


def test_a_series_keeps_its_name_labels_and_their_names() -> None:
    data = shown(SALES.set_index(["region", "year"])["sum"])
    assert data["name"] == "sum"
    assert data["index"] == [["north", 25], ["south", 25], ["south", 26]]
    assert data["index_names"] == ["region", "year"]
    assert shown(pd.Series([1, 2])) == {
        "kind": "series",
        "dtype": "int64",
        "shape": [2],
        "data": [1, 2],
    }


def test_two_columns_of_one_name_are_both_kept_in_lines() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert json.loads("".join(source_of(frame).pieces)) == {"a": 1, "a$2": 2}


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (
            SALES.groupby("region")[["sum"]].sum(),
            [{"region": "north", "sum": 10}, {"region": "south", "sum": 50}],
        ),
        (
            pd.Series({"north": 1.5, "south": None}),
            [{"index": "north", "value": 1.5}, {"index": "south", "value": None}],
        ),
        (pd.Series([pd.NaT, pd.Timestamp("2026-01-02")]), [None, "2026-01-02T00:00:00"]),
        (pa.table({"a": [1, None]}), [{"a": 1}, {"a": None}]),
        (np.ma.array([1, 2], mask=[True, False]), [None, 2]),
    ],
    ids=["frame", "series", "times", "table", "masked"],
)
def test_lines_of_a_stored_object_have_labels_and_nulls(value: Any, lines: list[Any]) -> None:
    assert [json.loads(line) for line in "".join(source_of(value).pieces).splitlines()] == lines


def test_keys_of_several_parts_are_told() -> None:
    assert shown(SALES.groupby(["region", "year"])["sum"].sum().to_dict()) == {
        '["north", 25]': 10,
        '["south", 25]': 20,
        '["south", 26]': 30,
    }


def test_a_large_nested_frame_is_cut_for_a_model_and_kept_whole() -> None:
    frame = pd.DataFrame({"n": range(3000)})
    data = shown({"it": frame})["it"]
    assert (len(data["rows"]), data["total_rows"]) == (20, 3000)
    stored = json.loads("".join(source_of({"it": frame}).pieces))
    assert stored["it"]["rows"][-1] == [2999]


@pytest.mark.parametrize("around", ["dict", "list", "dataclass"])
def test_an_image_in_data_is_a_block_beside_it(around: str) -> None:
    mapped = map_content(NESTED[around](Image.new("RGB", (3, 2))))
    assert [block["type"] for block in mapped.content] == ["structured_content", "image"]
    assert '"width": 3' in json.dumps(mapped.structured_content)


def test_a_captured_frame_is_redacted_by_the_names_of_columns() -> None:
    secret = "hunter" + "2hunter"
    frame = pd.DataFrame({"user": ["ada"], "password": [secret]})
    with capture(capture="SPAN_AND_EVENT") as captured:

        @captured.governor.govern(read_only=True, access_kinds=[])
        def users() -> Any:
            return {"users": frame}

        assert users()["users"] is frame
        text = captured.span.attributes["gen_ai.tool.call.result"]
        assert "ada" in text
        assert secret not in text


REDACTED: dict[str, Any] = {
    "dict": {"email": EMAIL, "n": 1},
    "tuple": ("x", EMAIL),
    "set": {EMAIL, "x"},
    "dataclass": Held(EMAIL),
    "model": Report(it=EMAIL),
    "named tuple": Row("x", EMAIL),
    "list of dataclasses": [Held(EMAIL), 5],
    "frame": pd.DataFrame({"email": [EMAIL, "x"], "n": [1, 2]}),
    "labels": pd.DataFrame({"n": [1]}, index=[EMAIL]),
    "series": pd.Series({"a": EMAIL, "b": "x"}),
    "array": np.array([EMAIL, "x"]),
    "frame in a dict": {"it": pd.DataFrame({"email": [EMAIL]})},
}


@pytest.mark.parametrize("name", REDACTED)
def test_redaction_keeps_the_type_of_a_result(name: str) -> None:
    value = REDACTED[name]
    before = str(value)
    with capture(policy=StaticEngine("allow")) as captured:

        @captured.governor.govern(read_only=True, access_kinds=[], redaction_required=True)
        def query() -> Any:
            return value

        got = query()
        assert type(got) is type(value)
        assert EMAIL not in str(got)
        assert "[redacted:email]" in str(got)
        assert str(value) == before, "what the tool holds is left as it is"


def test_untouched_columns_and_members_stay_as_they_were() -> None:
    with capture(policy=StaticEngine("allow")) as captured:

        @captured.governor.govern(read_only=True, access_kinds=[], redaction_required=True)
        def query() -> Any:
            return {
                "frame": pd.DataFrame({"email": [EMAIL], "n": [1], "day": [pd.NaT]}),
                "day": date(2026, 1, 2),
            }

        got = query()
        assert got["day"] == date(2026, 1, 2)
        assert str(got["frame"]["n"].dtype) == "int64"
        assert got["frame"]["day"].isna().all()


def test_pointers_into_an_object_of_a_library_withhold_it() -> None:
    with capture(policy=StaticEngine("allow")) as captured:

        @captured.governor.govern(read_only=True, access_kinds=[], redaction_rules=["/email"])
        def query() -> Any:
            return pd.DataFrame({"email": ["x"]})

        assert query() == "[result withheld: an obligation of the policy could not be met]"


SENSITIVE: dict[str, Any] = {"a dict": {"order": "A1", "total": 12, "email": EMAIL}, **REDACTED}


@pytest.mark.parametrize("word", ["confidential", "personal", "restricted", "a word of one's own"])
@pytest.mark.parametrize("name", SENSITIVE)
def test_a_sensitivity_redacts_inside(name: str, word: str) -> None:
    with capture() as captured:

        @captured.governor.govern(
            name="look_up", read_only=True, access_kinds=[], data_sensitivity=word
        )
        def look_up() -> Any:
            return SENSITIVE[name]

        got = look_up()
        assert type(got) is type(SENSITIVE[name])
        assert EMAIL not in str(got)


@pytest.mark.parametrize(
    "facts", [{"data_sensitivity": "secret"}, {"data_sensitivity": "credential"}]
)
@pytest.mark.parametrize("name", ["dict", "frame", "dataclass", "set"])
def test_a_secret_is_replaced_as_a_whole(name: str, facts: dict[str, Any]) -> None:
    with capture() as captured:

        @captured.governor.govern(name="look_up", read_only=True, access_kinds=[], **facts)
        def look_up() -> Any:
            return SENSITIVE[name]

        assert look_up() == "[redacted:schema_field]"


def test_text_of_a_sensitive_stream_is_redacted_inside() -> None:
    with capture() as captured:

        @captured.governor.govern(
            name="look_up", read_only=True, access_kinds=[], data_sensitivity="personal"
        )
        def look_up() -> Any:
            yield {"mail": EMAIL, "n": 1}
            yield "a word"

        assert list(look_up()) == [{"mail": "[redacted:email]", "n": 1}, "a word"]
