"""Pointers, budget, pseudonyms, own rules, and what happens to values that are not JSON-like."""

from __future__ import annotations

import enum
import math
import pathlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import pytest
from redaction_cases import ghp

from agenttool_otel.names import RedactionState
from agenttool_otel.redaction import Redaction, RedactionSettings, Redactor, Span, default_redactor


class Hostile:
    """Every way to run user code raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("user code ran")

    def __str__(self) -> str:
        raise RuntimeError("user code ran")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("user code ran")

    __hash__ = None  # type: ignore[assignment]


class HostileDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise RuntimeError("user code ran")

    def __iter__(self) -> Any:
        raise RuntimeError("user code ran")


class HostileStr(str):
    def encode(self, *args: Any, **kwargs: Any) -> bytes:
        raise RuntimeError("user code ran")

    def __str__(self) -> str:
        return "something else"


class Colour(enum.StrEnum):
    RED = "red"


def test_pointers_remove_whole_values() -> None:
    value = {"a": {"b": [1, {"c": "x"}]}, "d": "y", "e": {"d": 5}}
    result = default_redactor().redact(value, pointers=["/a/b/1", "d"])
    mark = "[redacted:schema_field]"
    assert result.value == {"a": {"b": [1, mark]}, "d": mark, "e": {"d": mark}}
    assert result.redactions == (
        Redaction("schema_field", "/a/b/1", "pointer", 1),
        Redaction("schema_field", "/d", "name", 1),
        Redaction("schema_field", "/e/d", "name", 1),
    )


@pytest.mark.parametrize("pointer", ["*", "", "/", "$"])
def test_a_star_removes_everything(pointer: str) -> None:
    result = default_redactor().redact({"a": 1}, pointers=[pointer], pointer_kind="policy")
    assert result == (
        "[redacted:policy]",
        (Redaction("policy", "", "*", 1),),
        RedactionState.REDACTED,
    )


def test_pointers_understand_wildcards_escapes_and_dots() -> None:
    value = {"rows": [{"x": 1, "k": 2}, {"x": 3, "k": 4}], "a/b": {"m~n": 5}, "p": {"q": 6}}
    result = default_redactor().redact(value, pointers=["/rows/*/x", "/a~1b/m~0n", "$.p.q"])
    mark = "[redacted:schema_field]"
    assert result.value == {
        "rows": [{"x": mark, "k": 2}, {"x": mark, "k": 4}],
        "a/b": {"m~n": mark},
        "p": {"q": mark},
    }


def test_pointers_hold_even_when_value_rules_are_off() -> None:
    redactor = Redactor(RedactionSettings(enabled=False))
    assert redactor.redact({"a": 1, "password": "p"}, pointers=["a"]).value == {
        "a": "[redacted:schema_field]",
        "password": "p",
    }


def test_user_code_of_a_value_never_runs() -> None:
    value = {
        "a": Hostile(),
        "b": HostileDict(password="hunter2"),
        "c": HostileStr(f"x {ghp}"),
        "d": Colour.RED,
    }
    result = default_redactor().redact(value)
    assert result.state is RedactionState.REDACTED
    assert result.value == {
        "a": "[omitted:Hostile]",
        "b": {"password": "[redacted:password]"},
        "c": "x [redacted:github_token]",
        "d": "red",
    }
    assert {type(item) for item in result.value.values()} == {str, dict}


def test_other_types_become_plain_or_typed_placeholders() -> None:
    value = {
        "bytes": b"\xff\x00",
        "path": pathlib.PurePosixPath("/x"),
        "nan": math.nan,
        "inf": -math.inf,
        "huge": 1 << 100_000,
        "ordered": OrderedDict(x=1),
        "tuple": (1, "a"),
        "set": {7},
        "none": None,
        "flag": True,
        3: "int key",
    }
    result = default_redactor().redact(value)
    assert result.value == {
        "bytes": "[omitted:bytes]",
        "path": "[omitted:PurePosixPath]",
        "nan": "NaN",
        "inf": "-Infinity",
        "huge": "[omitted:int]",
        "ordered": {"x": 1},
        "tuple": (1, "a"),
        "set": [7],
        "none": None,
        "flag": True,
        3: "int key",
    }
    assert result.state is RedactionState.NONE


def test_cycles_depth_and_size_are_bounded() -> None:
    cyclic: dict[str, Any] = {"a": 1}
    cyclic["self"] = cyclic
    assert default_redactor().redact(cyclic).value == {"a": 1, "self": "[omitted:cycle]"}
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    shown = default_redactor().redact(deep).value
    for _ in range(64):
        assert type(shown) is list
        shown = shown[0]
    assert shown == "[omitted:depth]"
    assert (
        Redactor(RedactionSettings(max_nodes=10)).redact(list(range(11))).value == "[omitted:nodes]"
    )
    shared = {"x": 1}
    assert default_redactor().redact([shared, shared, b""]).value == [
        {"x": 1},
        {"x": 1},
        "[omitted:bytes]",
    ]


def test_text_beyond_the_budget_is_dropped_and_said() -> None:
    text = "word " * 100
    result = default_redactor().redact_text(text, budget_bytes=52)
    assert result.value == "word " * 10 + "[omitted:over_budget]"
    assert result.redactions == (Redaction("over_budget", "", "budget", 1),)
    result = default_redactor().redact({"a": "x" * 30, "b": "yy " * 20, "c": "zz"}, budget_bytes=40)
    assert result.value == {
        "a": "x" * 30,
        "b": "yy yy yy [omitted:over_budget]",
        "c": "[omitted:over_budget]",
    }


@pytest.mark.parametrize("budget", range(0, 140, 3))
def test_a_cut_never_lets_a_part_of_a_secret_through(budget: int) -> None:
    text = f'before "password": "correct horse battery staple" middle {ghp} after and much more text behind it'
    shown = default_redactor().redact_text(text, budget_bytes=budget).value
    for part in ("correct", "horse", "battery", "staple", ghp[4:12], ghp[-8:]):
        assert part not in shown


def test_a_cut_inside_of_a_private_key_drops_the_key() -> None:
    body = "\n".join(
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDAC4AWkdwKYSd8" for _ in range(200)
    )
    text = f"key: -----BEGIN PRIVATE {'KEY'}-----\n{body}\n-----END PRIVATE {'KEY'}----- end"
    for budget in (60, 500, 5000):
        assert "MIIEv" not in default_redactor().redact_text(text, budget_bytes=budget).value


def test_pseudonyms_are_stable_keyed_and_tell_nothing() -> None:
    one = Redactor(RedactionSettings(pseudonym_key=b"0123456789abcdef"))
    two = Redactor(RedactionSettings(pseudonym_key=b"another key of 16"))
    value = {
        "a": {"password": "hunter2"},
        "b": {"password": "hunter2"},
        "c": {"password": "hunter3"},
    }
    shown = one.redact(value).value
    assert shown["a"]["password"] == shown["b"]["password"] != shown["c"]["password"]
    assert shown["a"]["password"].startswith("[redacted:password:")
    assert two.redact(value).value["a"] != shown["a"]
    assert one.redact(shown) == (shown, (), RedactionState.NONE)


def test_own_keys_patterns_and_allowed_values() -> None:
    redactor = Redactor(
        RedactionSettings(
            extra_keys=("Patient-Name",),
            extra_patterns=(("ticket", r"TCK-(\d{4})"),),
            allow=frozenset({"hunter2"}),
            allow_patterns=(r"test-[a-z]+",),
        )
    )
    value = {
        "patient_name": "Bob",
        "n": "see TCK-1234",
        "password": "hunter2",
        "t": "password=test-abc password=x1",
    }
    assert redactor.redact(value).value == {
        "patient_name": "[redacted:password]",
        "n": "see TCK-[redacted:ticket]",
        "password": "hunter2",
        "t": "password=test-abc password=[redacted:password]",
    }


def test_another_placeholder_is_recognised_too() -> None:
    redactor = Redactor(RedactionSettings(placeholder="<<{kind}>>"))
    once = redactor.redact({"password": "hunter2", "t": f"token {ghp}"})
    assert once.value == {"password": "<<password>>", "t": "token <<github_token>>"}
    assert redactor.redact(once.value) == (once.value, (), RedactionState.NONE)


@pytest.mark.parametrize(
    "change",
    [
        {"detectors": ("tokens", "magic")},
        {"placeholder": "***"},
        {"pseudonym_key": b"short"},
        {"byte_budget": -1},
        {"max_depth": 0},
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RedactionSettings(**change)


def test_a_bad_pattern_is_refused_when_the_redactor_is_built() -> None:
    with pytest.raises(ValueError, match="pattern"):
        Redactor(RedactionSettings(extra_patterns=(("x", "("),)))


class Broken:
    name = "broken"

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        raise RuntimeError("hunter2 in the message of a bug")


class Wild:
    name = "wild"

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        return [Span(-5, 3, "x", "x"), Span(2, 10**9, "x", "x"), Span(1, 1, "x", "x")]


def test_a_failing_detector_drops_the_text_and_says_so() -> None:
    redactor = Redactor(RedactionSettings(extra_detectors=(Broken(),)))
    result = redactor.redact({"a": "harmless", "n": 1})
    assert result == (
        {"a": "[redacted:failed]", "n": 1},
        (Redaction("failed", "/a", "broken", 1),),
        RedactionState.FAILED,
    )


def test_spans_out_of_range_are_ignored() -> None:
    assert Redactor(RedactionSettings(extra_detectors=(Wild(),))).redact(
        {"a": "harmless"}
    ).value == {"a": "harmless"}


def test_one_redactor_serves_many_threads() -> None:
    redactor = Redactor(RedactionSettings())
    value = {"password": "hunter2", "note": f"{ghp} and mail bob.smith@acme.io"}
    expected = redactor.redact(value)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(50):
            result = redactor.redact(value)
            if result != expected:
                wrong.append(result)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_where_the_tables_cannot_be_read_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agenttool_otel.redaction.cleaner", None)
    for value in ("password: hunter2", {"password": "hunter2"}, ["plain"]):
        redacted = Redactor().redact(value)
        assert (redacted.value, redacted.state.value) == ("[redacted:failed]", "failed")


def test_listings_under_the_users_own_names_are_removed() -> None:
    redactor = Redactor(RedactionSettings(extra_keys=("patients",)))
    for value in ([{"name": "John", "description": "diabetes"}], ["should have cancer"]):
        assert "patients" in redactor.redact({"patients": value}).value
        assert not any(
            word in str(redactor.redact({"patients": value}).value)
            for word in ("John", "diabetes", "cancer")
        )


@pytest.mark.parametrize(
    "wrong", [{"extra_keys": (1,)}, {"extra_detectors": (object(),)}, {"allow": None}]
)
def test_settings_that_cannot_work_are_told_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        Redactor(RedactionSettings(**wrong))


def test_a_value_that_is_no_text_does_not_drop_the_rest() -> None:
    class Evil:
        def __str__(self) -> str:
            raise AssertionError("run")

    redacted = Redactor().redact({"tokens": [{"v": Evil(), "w": "\ud800"}], "keep": 1}).value
    assert redacted["keep"] == 1


@pytest.mark.parametrize(
    ("value", "stays"),
    [
        ({"to": "fred.miller" + "9246@gmail.com"}, True),
        ({"iban": "DE89370400440532013000"}, True),
        ({"card": "4111 1111 " + "1111 1111"}, False),
        ({"token": "ghp_" + "CoIF7uxugFdGh5kR2mWq8ZtLbNcVaS3eYj1P"}, False),
    ],
)
def test_kinds_that_are_kept_are_those_alone(value: dict[str, str], stays: bool) -> None:
    kept = Redactor(RedactionSettings(kept_kinds=frozenset({"email", "iban"})))
    assert (kept.redact(value).value == value) is stays
    assert Redactor().redact(value).value != value
