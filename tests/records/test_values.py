"""Values become bounded JSON, copies and digests; none of the values' own code runs, and nothing
ever raises.
"""

from __future__ import annotations

import enum
import json
import math
import time
import uuid
from collections import OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, PrivateAttr, SecretStr, field_serializer

from agenttool_otel.values.canonical import canonical_bytes, digest, keyed_digest
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.copying import NotCopyable
from agenttool_otel.values.pointers import changed_pointers
from agenttool_otel.values.snapshot import snapshot


class Trap:
    """Fails the test when any of its code is run."""

    def _fail(self, *args, **kwargs):
        raise AssertionError("user code was run")

    __str__ = __repr__ = __iter__ = __len__ = __bool__ = __hash__ = __eq__ = __getattr__ = _fail
    __getitem__ = __float__ = __int__ = __index__ = __reduce_ex__ = __deepcopy__ = __copy__ = _fail
    __class__ = property(_fail)  # type: ignore[assignment]


class TrapDict(dict):
    items = keys = values = get = __iter__ = __getitem__ = __len__ = Trap._fail


class TrapList(list):
    __iter__ = __len__ = __getitem__ = Trap._fail


class TrapStr(str):
    __slots__ = ()
    __str__ = __repr__ = __eq__ = __len__ = encode = isascii = Trap._fail
    __hash__ = str.__hash__


@dataclass
class Plain:
    a: int
    b: list = field(default_factory=list)

    @property
    def computed(self):
        raise AssertionError("user code was run")


@dataclass(slots=True, frozen=True)
class Slotted:
    a: int
    b: list


class Model(BaseModel):
    model_config = {"extra": "allow"}
    x: int
    y: list[int] = []
    _private: int = PrivateAttr(7)

    @field_serializer("x")
    def spoil(self, value):
        raise AssertionError("user code was run")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class OddZone(tzinfo):
    def utcoffset(self, when):
        raise AssertionError("user code was run")


Point = namedtuple("Point", "x y")
CYCLE: list = [1]
CYCLE.append(CYCLE)

EXAMPLES = [
    (
        {"a": 1, "b": "x", "c": None, "d": True, "e": 1.5},
        {"a": 1, "b": "x", "c": None, "d": True, "e": 1.5},
    ),
    (Plain(1, [2]), {"a": 1, "b": [2]}),
    (Slotted(1, [2]), {"a": 1, "b": [2]}),
    (Model(x=1, z=[3]), {"x": 1, "y": [], "z": [3]}),
    (Colour.RED, "red"),
    (Level.HIGH, 3),
    ({Colour.RED: 1}, {"red": 1}),
    ({1: "a", "1": "b"}, {"1": "a", "1$2": "b"}),
    ({None: 1, True: 2}, {"null": 1, "true": 2}),
    ((1, [2]), [1, [2]]),
    (Point(1, 2), [1, 2]),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"b", "a"}), ["a", "b"]),
    (deque([1, 2]), [1, 2]),
    (UserDict({"a": 1}), {"a": 1}),
    (UserList([1]), [1]),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (OrderedDict(a=1), {"a": 1}),
    (defaultdict(list, a=[1]), {"a": [1]}),
    (math.nan, {"$float": "nan"}),
    ([math.inf, -math.inf], [{"$float": "inf"}, {"$float": "-inf"}]),
    (2**70, 2**70),
    (2**70_000, {"$truncated": "int", "bits": 70_001}),
    (b"ab", {"$bytes": "YWI="}),
    (bytearray(b"ab"), {"$bytes": "YWI="}),
    (memoryview(b"abcd")[::2], {"$bytes": "YWM="}),
    ("a\ud800b", "a\\ud800b"),
    ({"k\udfff": 1}, {"k\\udfff": 1}),
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
    (date(2026, 1, 2), "2026-01-02"),
    (timedelta(minutes=1), 60.0),
    (PurePosixPath("/etc/../x"), "/etc/../x"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Decimal("1.50"), "1.50"),
    (CYCLE, [1, {"$ref": "cycle"}]),
    (TrapDict(a=1), {"a": 1}),
    (TrapList([1]), [1]),
    (TrapStr("x"), "x"),
    (range(3), "range(0, 3)"),
]


@pytest.mark.parametrize(
    "index", range(len(EXAMPLES)), ids=lambda index: type(EXAMPLES[index][0]).__name__
)
def test_each_kind_of_value_has_its_json_form(index):
    value, expected = EXAMPLES[index]
    found = to_json_value(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False).encode()


@pytest.mark.parametrize(
    "make",  # pytest itself would look at the objects
    [
        lambda: Trap(),
        lambda: {"a": Trap()},
        lambda: [Trap()],
        lambda: {"k": (Trap(),)},
        lambda: Plain(Trap()),
        lambda: datetime(2026, 1, 1, tzinfo=OddZone()),
    ],
)
def test_no_code_of_a_foreign_object_is_run(make):
    value = make()
    text = json.dumps(to_json_value(value))
    assert "$type" in text
    snapshot(value)
    canonical_bytes(value)


def test_secrets_and_iterators_show_their_class_only():
    hidden = "hun" + "ter2"
    items = iter([hidden])
    found = to_json_value({"s": SecretStr(hidden), "g": (x for x in items)})
    assert found == {
        "s": {"$type": "pydantic.types.SecretStr"},
        "g": {"$type": "builtins.generator"},
    }
    assert next(items) == hidden  # nobody consumed it


def test_numpy_and_pandas_scalars_are_numbers_and_times():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    assert to_json_value([numpy.int64(3), numpy.float64(0.5), numpy.bool_(True)]) == [3, 0.5, True]
    assert to_json_value(pandas.Timestamp("2026-01-02", tz="UTC")) == "2026-01-02T00:00:00+00:00"
    assert digest(numpy.int64(3)) != digest(numpy.int64(4))


def test_limits_leave_parts_out_and_say_so():
    assert to_json_value([[[1]]], max_depth=2) == [[{"$truncated": "depth"}]]
    assert to_json_value([1, 2, 3, 4], max_nodes=3) == [1, 2, {"$truncated": "nodes"}]
    assert to_json_value(["ab", "cdef"], max_chars=4) == ["ab", {"$truncated": "chars", "chars": 4}]
    assert to_json_value("x" * 2_000_000) == {"$truncated": "chars", "chars": 2_000_000}


def deep(levels, kind=list):
    value = kind()
    for _ in range(levels):
        value = [value] if kind is list else {"k": value}
    return value


def undo(value):
    """Take a deep value apart, because Python's own deallocation of very deep dataclasses
    may recurse.
    """
    while isinstance(value, (list, dict)) and value:
        value = value.pop() if isinstance(value, list) else value.popitem()[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [list, dict])
def test_twenty_thousand_levels_are_no_problem(kind):
    value = deep(20_000, kind)
    assert "$truncated" in json.dumps(to_json_value(value))
    copy = snapshot(value)
    assert copy is not value
    assert digest(copy) == digest(value) != digest(deep(19_999, kind))
    undo(value)
    undo(copy)


@pytest.mark.speed
def test_shared_parts_that_unfold_to_2_to_the_200_end_in_time():
    value: list = [1]
    for _ in range(200):
        value = [value, value]
    started = time.thread_time()
    json.dumps(to_json_value(value))
    assert digest(value) == digest(snapshot(value))
    other: list = [2]
    for _ in range(200):
        other = [other, other]
    assert digest(value) != digest(other)
    assert time.thread_time() - started < 20


@pytest.mark.speed
def test_a_million_strings_are_cut_short_quickly():
    value = ["x" * 100] * 1_000_000
    started = time.thread_time()
    found = to_json_value(value)
    assert time.thread_time() - started < 5
    assert len(found) < 100_002


# --- copies ---------------------------------------------------------------------------------------


def test_a_copy_shares_nothing_that_can_change():
    inner = [1, {2}, bytearray(b"x"), deque([3], maxlen=4), defaultdict(int, a=1)]
    value = {
        "a": inner,
        "m": Model(x=1, y=[1], z=[2]),
        "p": Plain(1, [2]),
        "s": Slotted(1, [2]),
        "t": ([1], {"k": [2]}),
    }
    copy = snapshot(value)
    before = canonical_bytes(copy)
    assert before == canonical_bytes(value)
    inner.append(9)
    inner[1].add(9)
    inner[2].append(9)
    inner[3].append(9)
    inner[4]["b"] = 9
    value["m"].y.append(9)
    value["m"].x = 9
    value["m"].z.append(9)
    value["p"].b.append(9)
    value["s"].b.append(9)
    value["t"][0].append(9)
    value["t"][1]["k"].append(9)
    assert canonical_bytes(copy) == before
    assert type(copy["m"]) is Model
    assert copy["m"]._private == 7
    assert copy["m"].model_fields_set == {"x", "y", "z"}
    assert copy["a"][3].maxlen == 4


def test_a_copy_keeps_sharing_and_cycles():
    shared = [1]
    copy = snapshot([shared, shared, (shared,)])
    assert copy[0] is copy[1] is copy[2][0]
    assert copy[0] is not shared
    loop = snapshot(CYCLE)
    assert loop[1] is loop
    tied: list = []
    tied.append((tied,))
    again = snapshot(tied)
    assert again[0][0] is again


def test_foreign_objects_are_kept_by_reference():
    lock, trap = __import__("threading").Lock(), Trap()
    copy = snapshot({"l": [lock], "t": trap})
    assert copy["l"][0] is lock
    assert copy["t"] is trap


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
        st.binary(max_size=50),
        st.decimals(),
        st.dates(),
        st.uuids(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(st.characters(), max_size=5), st.integers()), inner, max_size=4
        ),
        st.builds(Plain, inner, st.lists(inner, max_size=2)),
    ),
    max_leaves=20,
)


@given(VALUES)
def test_any_value_converts_copies_and_digests(value):
    text = json.dumps(to_json_value(value), allow_nan=False)
    text.encode()
    assert digest(snapshot(value)) == digest(value)
    assert changed_pointers(value, snapshot(value)) == []


# --- canonical bytes ------------------------------------------------------------------------------

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8")),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.text(st.characters(codec="utf-8")).filter(lambda k: not k.startswith("$")),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(JSON)
def test_json_data_has_exactly_its_rfc_8785_bytes(value):
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii"), max_size=4), st.text(st.characters(codec="ascii"))
    )
)
def test_the_fast_way_and_the_slow_way_agree(value):
    padded = {**value, "zz": [1]}  # a list sends it the slow way
    slow = json.loads(canonical_bytes(padded))
    slow.pop("zz")
    assert canonical_bytes(value) == rfc8785.dumps(slow)


DIFFERENT = [
    None,
    math.nan,
    math.inf,
    "nan",
    "NaN",
    {"$float": "nan"},
    {"$$float": "nan"},
    2**53 + 1,
    2**53 + 2,
    float(2**53 + 2),
    str(2**53 + 1),
    {"$int": hex(2**53 + 1)},
    10**5000,
    10**5000 + 1,
    b"ab",
    "YWI=",
    {"$bytes": "YWI="},
    "\ud800",
    "\\ud800",
    {"$str": "eda080"},
    {1: "a"},
    {"1": "a"},
    {"$map": [[1, "a"]]},
    {1, 2},
    [1, 2],
    {"$set": [1, 2]},
    Plain(1, []),
    {"a": 1, "b": []},
    PurePosixPath("/x"),
    "/x",
    Decimal("1.5"),
    1.5,
    Decimal("1.50"),
    uuid.UUID(int=1),
    str(uuid.UUID(int=1)),
    date(2026, 1, 1),
    "2026-01-01",
    SecretStr("a"),
    SecretStr("b"),
    "a",
    "x" * 2_000_000,
    "x" * 1_999_999 + "y",
    b"x" * 5000,
    b"x" * 4999 + b"y",
    True,
    1,
    CYCLE,
    [1, [1]],
]


def test_values_that_differ_never_share_their_bytes():
    seen: dict[bytes, object] = {}
    for value in DIFFERENT:
        found = canonical_bytes(value)
        assert found not in seen, (value, seen.get(found))
        seen[found] = value


@given(VALUES, VALUES)
def test_json_forms_that_differ_have_different_digests(a, b):
    if json.dumps(to_json_value(a)) != json.dumps(to_json_value(b)) and canonical_bytes(
        a
    ) == canonical_bytes(b):
        # The only equalities that RFC 8785 adds: -0.0 is 0, 1.0 is 1, and the order of members does
        # not count.
        assert to_json_value(a) == to_json_value(b)


def test_the_order_of_members_and_items_of_sets_does_not_count():
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert digest({"a", "b", "c"}) == digest({"c", "b", "a"})
    assert digest({1: "a", 2: "b"}) == digest({2: "b", 1: "a"})
    assert digest((1, 2)) == digest([1, 2])
    assert digest(Colour.RED) == digest("red")


def test_what_cannot_be_read_equals_nothing_and_fits_no_approval():
    value = UserDict()
    value.data = 5
    assert digest({"a": value}) != digest({"a": value})
    assert "$error" in str(to_json_value({"a": value}))


# --- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["/a"]),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": 1}, {}, ["/a"]),
        ({}, {"a": None}, ["/a"]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ["/a~1b/~0"]),
        ([1, 2, 3], [1, 5], ["/1", "/2"]),
        ("x", "y", [""]),
        ({"a": {"b": [1]}}, {"a": {"b": {"c": 1}}}, ["/a/b"]),
        ({"p": PurePosixPath("/x")}, {"p": "/x"}, [""]),
        ({"s": "x" * 2_000_000}, {"s": "x" * 1_999_999 + "y"}, [""]),
    ],
)
def test_changes_are_named_by_pointer(a, b, expected):
    assert changed_pointers(a, b) == expected


def test_a_thousand_changes_are_summed_up():
    found = changed_pointers(list(range(5000)), list(range(1, 5001)), limit=10)
    assert len(found) == 10
    assert found[-1] == ""


@given(JSON, JSON)
def test_no_pointers_means_equal_bytes_and_the_other_way_round(a, b):
    assert (changed_pointers(a, b) == []) == (canonical_bytes(a) == canonical_bytes(b))


class Bare(enum.StrEnum):
    SAFE = "safe.txt"


class Telling(enum.StrEnum):
    SAFE = "safe.txt"

    def __str__(self) -> str:
        return self.value


class Lying(str, enum.Enum):  # noqa: UP042
    SAFE = "safe.txt"

    def __str__(self) -> str:
        return "/etc/shadow"


class LyingFormat(enum.StrEnum):
    SAFE = "safe.txt"

    def __format__(self, spec: str) -> str:
        return "/etc/shadow"


class OtherValue(enum.Enum):
    SAFE = "safe.txt"

    @property
    def value(self) -> str:  # type: ignore[override]
        return "/etc/shadow"


@dataclass
class Shifty:
    path: str = "safe.txt"

    def __getattribute__(self, name: str) -> object:
        return "/etc/shadow" if name == "path" else object.__getattribute__(self, name)


@pytest.mark.parametrize("value", [Bare.SAFE, Telling.SAFE])
def test_enum_members_that_say_their_value_are_kept(value: object) -> None:
    assert snapshot(value) is value


@pytest.mark.parametrize("value", [Lying.SAFE, LyingFormat.SAFE, OtherValue.SAFE, Shifty()])
def test_what_reads_as_something_else_is_not_copied(value: object) -> None:
    with pytest.raises(NotCopyable):
        snapshot({"argument": value})


def test_a_digest_that_leaves_is_not_to_be_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = keyed_digest({"pin": 4921})
    assert ours == keyed_digest({"pin": 4921}) != keyed_digest({"pin": 4922})
    assert digest({"pin": 4921}).removeprefix("sha256:") not in ours
    monkeypatch.setenv("AGENTTOOL_DIGEST_KEY", "of this run")
    assert keyed_digest({"pin": 4921}) != ours
