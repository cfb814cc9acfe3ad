"""Obligations and values that can't be read: met, or the result is withheld, whatever kind of value
it is.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, PrivateAttr, SecretStr

from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore
from agenttool_otel.testing import Capture, StaticEngine, capture, decision
from agenttool_otel.values.conversion import to_whole_json
from samples import one_in

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TEXT = f"token={TOKEN}"


class Box:
    def __init__(self) -> None:
        self.token = TOKEN


class Tagged(str):
    token: str


class Rows(list[Any]):
    source: str


@dataclass
class Answer:
    n: int = 1
    text: str = "fine"
    made_by: Any = field(default=None, init=False, repr=False)


class Model(BaseModel):
    n: int = 1
    _token: str = PrivateAttr(default=TOKEN)


class Credentials(BaseModel):
    token_holder: SecretStr = SecretStr(TOKEN)


def tagged() -> Tagged:
    text = Tagged("fine")
    text.token = TOKEN
    return text


def rows() -> Rows:
    found = Rows([1])
    found.source = TOKEN
    return found


def answer() -> Answer:
    found = Answer()
    found.not_a_field = TOKEN  # type: ignore[attr-defined]
    return found


def deep() -> dict[str, Any]:
    inner: dict[str, Any] = {"text": TEXT}
    for _ in range(100):
        inner = {"a": inner}
    return inner


UNREADABLE: dict[str, Callable[[], Any]] = {
    "iterator": lambda: iter([TEXT]),
    "generator": lambda: (line for line in [TEXT]),
    "open file": lambda: io.StringIO(TEXT),
    "open binary file": lambda: io.BytesIO(TEXT.encode()),
    "own object": Box,
    "function": lambda: lambda: TEXT,
    "secret": lambda: SecretStr(TOKEN),
    "array": lambda: np.array([TEXT]),
    "frame": lambda: pd.DataFrame({"text": [TEXT]}),
    "archive": lambda: gzip.compress(TEXT.encode()),
}
PARTLY_READABLE: dict[str, Callable[[], Any]] = {
    "object in a list": lambda: ["fine", Box()],
    "iterator in a dict": lambda: {"fine": 1, "rows": iter([TEXT])},
    "object as a key": lambda: {("key", Box()): "fine"},
    "long bytes in a dict": lambda: {"fine": TEXT.encode() * 100},
    "deep nesting": deep,
    "many items": lambda: [*range(250_000), TEXT],
    "long text in a dict": lambda: {"fine": "x" * 2_000_000, "text": TEXT},
    "text with attributes": tagged,
    "list with attributes": rows,
    "dataclass with more than its fields": answer,
    "model with private attributes": Model,
    "model with a secret": Credentials,
}
READABLE: dict[str, Callable[[], Any]] = {
    "text": lambda: TEXT,
    "bytes": lambda: TEXT.encode(),
    "long bytes": lambda: b"fine " * 1000 + TEXT.encode(),
    "dict": lambda: {"token": TOKEN},
    "list": lambda: [TEXT],
    "short bytes in a list": lambda: [TEXT.encode()],
    "dataclass": lambda: Answer(text=TEXT),
    "exception-like tuple": lambda: ("fine", TEXT),
}
OBLIGED: dict[str, tuple[Any, dict[str, Any]]] = {
    "contract": ("allow", {"redaction_required": True}),
    "pointer": (decision("allow", obligations={"redact_result": ["/token"]}), {}),
    "rules": ("allow", {"redaction_rules": ["token"]}),
    "all": (decision("allow", obligations={"redact_result": ["*"]}), {}),
}


def told(value: Any) -> str:
    """Get out of a value what a consumer could."""
    if isinstance(value, (str, bytes)):
        return f"{value!r} {getattr(value, 'token', '')}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(told, value)) + getattr(value, "source", "")
    if isinstance(value, dict):
        return " ".join(f"{told(key)} {told(item)}" for key, item in value.items())
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return told({**dict(value), **(value.__pydantic_private__ or {})})
    if isinstance(value, (pd.DataFrame, np.ndarray)):
        return str(value.values if isinstance(value, pd.DataFrame) else value)
    if hasattr(value, "read"):
        return str(value.read())
    if hasattr(value, "__next__"):
        return " ".join(map(told, value))
    if callable(value):
        return str(value())
    return told(vars(value)) if hasattr(value, "__dict__") else repr(value)


def governed(captured: Capture, make: Callable[[], Any], **options: Any) -> Any:
    def tool() -> Any:
        return make()

    return captured.governor.govern(**options)(tool)


@pytest.mark.parametrize("made", UNREADABLE)
@pytest.mark.parametrize("obliged", OBLIGED)
def test_unreadable_values_are_withheld_where_obliged(made: str, obliged: str) -> None:
    answer, options = OBLIGED[obliged]
    with capture(policy=StaticEngine(answer)) as captured:
        tool = governed(captured, UNREADABLE[made], **options)
        assert TOKEN not in told(tool())
        attributes = captured.span.attributes
        # no pointer leads into them
        read = made in ("array", "frame") and obliged in ("contract", "rules")
        if obliged == "all" or read:
            assert attributes["agenttool.redaction.state"] == "redacted"
        else:
            assert tool() == "[result withheld: an obligation of the policy could not be met]"
            assert attributes["agenttool.redaction.state"] == "failed"
            assert attributes["agenttool.result.status"] == "redacted"
        envelope = tool.tool.invoke()
        assert TOKEN not in told(envelope.value)
        assert TOKEN not in str(envelope.to_json_object())


@pytest.mark.parametrize("made", one_in(3, PARTLY_READABLE))
@pytest.mark.parametrize("obliged", OBLIGED)
def test_unreadable_parts_are_left_out_where_obliged(made: str, obliged: str) -> None:
    answer, options = OBLIGED[obliged]
    with capture(policy=StaticEngine(answer)) as captured:
        tool = governed(captured, PARTLY_READABLE[made], **options)
        got = tool()
        assert TOKEN not in told(got)
        assert captured.span.attributes["agenttool.redaction.state"] == "redacted"
        if obliged == "contract" and made not in (
            "many items",
            "deep nesting",
            "model with a secret",
        ):
            assert "fine" in told(got) or got in ([1], {"n": 1}), "what can be read stays"
        envelope = tool.tool.invoke()
        assert TOKEN not in told(envelope.value)
        assert TOKEN not in str(envelope.to_json_object())


@pytest.mark.parametrize("made", READABLE)
@pytest.mark.parametrize("obliged", OBLIGED)
def test_what_can_be_read_is_redacted_where_that_is_obliged(made: str, obliged: str) -> None:
    answer, options = OBLIGED[obliged]
    with capture(policy=StaticEngine(answer)) as captured:
        got = governed(captured, READABLE[made], **options)()
        assert TOKEN not in told(got)
        assert "[redacted:" in told(got)
        if obliged == "contract" and "bytes" in made and "in a" not in made:
            assert type(got) is bytes


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "fine",
        b"fine",
        b"",
        1,
        2.5,
        float("nan"),
        True,
        {"a": [1, "b"]},
        (1, 2),
        {1, 2},
        Path("a/b"),
        Answer(),
    ],
    ids=repr,
)
def test_what_needs_no_redaction_stays_the_very_object(value: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = governed(captured, lambda: value, redaction_required=True)
        assert tool() is value
        assert captured.span.attributes["agenttool.redaction.state"] == "none"


@pytest.mark.parametrize("made", UNREADABLE)
@pytest.mark.parametrize(
    "strategy", [None, "preview_and_persist", "ref_only", "redact", "never_persist"]
)
def test_a_limit_of_the_policy_binds_what_has_no_size(
    made: str, strategy: str | None, tmp_path: Path
) -> None:
    obligations = {"max_inline_chars": 5} | ({"persistence": strategy} if strategy else {})
    keeper = ResultKeeper(ResultStore(LocalBackend(tmp_path, durable=False)))
    with capture(
        policy=StaticEngine(decision("allow", obligations=obligations)), results=keeper
    ) as captured:
        tool = governed(captured, UNREADABLE[made])
        shown = told(tool())
        # these can be read: they are stored and previewed, redacted
        if made not in ("array", "frame"):
            assert type(tool()) is str
        assert TOKEN not in shown
        assert TOKEN not in told(tool.tool.invoke().value)
    assert not any(
        TOKEN.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )


def test_a_sizeless_result_is_dropped_for_an_obliged_limit() -> None:
    with capture(
        policy=StaticEngine(decision("allow", obligations={"max_inline_chars": 5}))
    ) as captured:
        envelope = governed(captured, Box).tool.invoke()
        assert envelope.status.value == "too_large"
        assert envelope.value == "[result dropped: result_size_unknown]"
        assert envelope.persistence["strategy"] == "drop_with_reason"
        assert envelope.persistence["reason"] == "result_size_unknown"


@pytest.mark.parametrize("made", ["object in a list", "iterator in a dict", "long bytes in a dict"])
def test_what_hides_in_a_small_container_is_not_small(made: str) -> None:
    with capture(
        policy=StaticEngine(decision("allow", obligations={"max_inline_chars": 5000}))
    ) as captured:
        assert (
            governed(captured, PARTLY_READABLE[made])() == "[result dropped: result_size_unknown]"
        )


def test_an_array_within_an_obliged_limit_is_delivered() -> None:
    array = np.zeros(10)
    with capture(
        policy=StaticEngine(decision("allow", obligations={"max_inline_chars": 5000}))
    ) as captured:
        assert governed(captured, lambda: array)() is array


def test_without_an_obligation_a_caller_gets_the_very_value() -> None:
    box = Box()
    with capture(policy=StaticEngine("allow")) as captured:
        assert governed(captured, lambda: box, max_inline_chars=5)() is box


def test_items_of_a_stream_that_nobody_can_read_are_withheld() -> None:
    def body() -> Iterator[Any]:
        yield "fine"
        yield Box()
        yield [Box()]

    with capture(policy=StaticEngine("allow")) as captured:
        got = list(captured.governor.govern(redaction_required=True)(body)())
        assert TOKEN not in told(got)
        assert got[:2] == ["fine", "[item withheld: redaction failed]"]
    with capture(
        policy=StaticEngine(decision("allow", obligations={"max_inline_chars": 500}))
    ) as captured:
        got = list(captured.governor.govern(body)())
        assert TOKEN not in told(got)
        assert got[0] == "fine"


@pytest.mark.parametrize("strategy", [None, "preview_and_persist", "redact", "never_persist"])
def test_sizeless_items_are_not_gathered_past_an_obliged_limit(
    strategy: str | None, tmp_path: Path
) -> None:
    def body() -> Iterator[Any]:
        yield "fine"
        yield Box()

    obligations = {"max_inline_chars": 5000} | ({"persistence": strategy} if strategy else {})
    keeper = ResultKeeper(ResultStore(LocalBackend(tmp_path, durable=False)))
    with capture(
        policy=StaticEngine(decision("allow", obligations=obligations)), results=keeper
    ) as captured:
        envelope = captured.governor.govern(body).tool.invoke()
        assert TOKEN not in told(envelope.value)
        assert envelope.status.value != "failed"


def test_whole_data_says_what_it_leaves_out() -> None:
    for made in PARTLY_READABLE.values():
        value = made()
        data, whole = to_whole_json(value)
        assert not whole or len(str(data)) > 1_000_000, value
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    assert to_whole_json(cyclic)[1], "what is in itself was read already"
