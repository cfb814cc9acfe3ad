"""The form in which arguments are decided is the form in which they run."""

from __future__ import annotations

import base64
import enum
import threading
from collections import Counter, UserDict, UserList, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PosixPath
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from pydantic import (
    AliasChoices,
    Base64Str,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    StringConstraints,
)

from agenttool_otel import ApprovalRequired, ToolDenied, ToolInputInvalid
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

Lower = Annotated[str, StringConstraints(to_lower=True)]
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"


class Request(BaseModel):
    name: str
    target: str = "/etc/shadow"


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    location: str = Field("README.md", validation_alias=AliasChoices("path", "p"))


@dataclass
class Made:
    name: str
    paths: list[str] = field(default_factory=lambda: ["/etc/shadow"])


def _typed(kind: Any, ran: list[Any]) -> Callable[[Any], None]:
    def tool(x: Any) -> None:
        ran.append(x)

    tool.__annotations__ = {"x": kind}
    return tool


@pytest.mark.parametrize(
    ("kind", "given", "decided"),
    [
        (Lower, "RM -RF /", "rm -rf /"),
        (Base64Str, base64.b64encode(b"/etc/shadow").decode(), "/etc/shadow"),
        (Request, {"name": "n"}, {"name": "n", "target": "/etc/shadow"}),
        (Made, {"name": "n"}, {"name": "n", "paths": ["/etc/shadow"]}),
        (list[Request], [{"name": "n"}], [{"name": "n", "target": "/etc/shadow"}]),
        (HttpUrl, "HTTP://Example.COM/a", "http://example.com/a"),
        (
            SecretStr,
            "shown as it came, because its class hides it",
            "shown as it came, because its class hides it",
        ),
        (Path, "a/../b", "a/../b"),
        (bytes, "text", "text"),
    ],
)
def test_a_models_json_is_decided_as_it_was_read(kind: Any, given: Any, decided: Any) -> None:
    engine, ran = StaticEngine("allow"), []
    with capture(policy=engine) as captured:
        result = captured.governor.govern(_typed(kind, ran)).tool.invoke(x=given)
    assert result.status == "succeeded", result.error
    assert engine.documents[0]["input"] == {"x": decided}
    assert len(ran) == 1


@pytest.mark.parametrize(
    "given", [{"path": "/etc/shadow"}, {"p": "/etc/shadow"}, {"location": "/etc/shadow"}]
)
def test_a_field_has_its_schemas_name_whatever_its_key(given: dict[str, str]) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(_typed(Aliased, []), path_args=["/x/path"])
        governed.tool.invoke(x=given)
        governed(Aliased(**given))
    for document in engine.documents:
        assert document["input"] == {"x": {"path": "/etc/shadow"}}
        assert [fact["argument"] for fact in document["facts"]["paths"]] == ["/x/path"]


def test_a_change_is_decided_as_read_with_its_defaults() -> None:
    ran: list[Any] = []
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({"command": "RM"}) if "ls" in str(ctx.arguments) else None,
        "pre_tool_use",
    )

    def tool(command: Lower, path: str = "/etc/shadow") -> None:
        ran.append((command, path))

    engine = StaticEngine("allow")
    with capture(policy=engine, hooks=hooks) as captured:
        captured.governor.govern(tool)("ls", "b")
    assert [document["input"] for document in engine.documents] == [
        {"command": "rm", "path": "/etc/shadow"}
    ]
    assert ran == [("rm", "/etc/shadow")]


def test_an_edit_read_as_something_else_is_decided_as_that() -> None:
    ran: list[Any] = []

    def tool(command: Lower, path: str = "p") -> None:
        ran.append((command, path))

    engine = StaticEngine({"tool": decision("ask")})
    approver = FixedApprover(
        ApprovalAnswer(True, answered_by="user:h", edited_input={"command": "RM"})
    )
    with capture(policy=engine, approver=approver) as captured:
        captured.governor.govern(tool)("ls", "b")
    assert engine.documents[-1]["input"] == {"command": "rm", "path": "p"}
    assert ran == [("rm", "p")]


def test_a_policys_update_without_a_default_is_applied_once() -> None:
    ran: list[Any] = []

    def tool(x: str, note: str = "") -> None:
        ran.append((x, note))

    with capture(
        policy=StaticEngine({"tool": decision("allow", updated_input={"x": "b"})})
    ) as captured:
        captured.governor.govern(tool)("a")
    assert ran == [("b", "")]


def test_a_paused_json_call_runs_as_first_read() -> None:
    ran: list[Any] = []
    engine = StaticEngine("ask")
    with capture(policy=engine) as captured:
        governor = captured.governor
        governed = governor.govern(_typed(Base64Str, ran))
        result = governed.tool.invoke(x=base64.b64encode(b"bm90ZXM=").decode())
        request = governor.approvals.store.list()[0]
        governor.approvals.store.answer(
            request.request_id, ApprovalAnswer(True, answered_by="user:h")
        )
        assert governor.resume(request.invocation_id).status == "succeeded"
    assert result.status == "pending"
    assert ran == ["bm90ZXM="]
    assert [document["input"] for document in engine.documents] == [{"x": "bm90ZXM="}] * 2


# --- copies ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spot:
    x: int


Pair = namedtuple("Pair", "names more")


class Names(list[str]):
    pass


class Answering(dict[str, str]):
    def __getitem__(self, key: str) -> str:
        return "/etc/shadow"


class Speaking(str):
    def __str__(self) -> str:
        return "rm -rf /"


class Elsewhere(PosixPath):
    def __fspath__(self) -> str:
        return "/etc/shadow"


class TwoFaced(str, enum.Enum):  # noqa: UP042 - the older form is the one that can differ
    def __new__(cls, value: str) -> TwoFaced:
        made = str.__new__(cls, "/etc/shadow")
        made._value_ = value
        return made

    SAFE = "safe"


HOLDERS: dict[str, Callable[[list[str]], Any]] = {
    "beside a set of frozen dataclasses": lambda inner: {"targets": {Spot(1)}, "names": inner},
    "beside a key that is one": lambda inner: {"by": {Spot(1): 1}, "names": inner},
    "beside a frozenset of tuples of them": lambda inner: [inner, frozenset({(Spot(1),)})],
    "in a named tuple": lambda inner: Pair(inner, 1),
    "in a UserDict": lambda inner: UserDict(names=inner),
    "in a UserList": lambda inner: UserList([inner]),
    "behind a mapping proxy": lambda inner: MappingProxyType({"names": inner}),
    "in a dict of a class of its own": lambda inner: type("Box", (dict,), {})(names=inner),
    "in a counter": lambda inner: [Counter(a=1), inner],
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_is_shown_by_content_is_copied_and_keeps_its_class(name: str) -> None:
    inner = ["safe"]
    value = HOLDERS[name](inner)
    ran: list[Any] = []

    class Meddling:
        def ask(self, request: Any) -> ApprovalAnswer:
            inner.append("evil")
            return ApprovalAnswer(True, answered_by="user:h")

    with capture(policy=StaticEngine("ask"), approver=Meddling()) as captured:
        captured.governor.govern(ran.append, name="tool")(value)
    assert "evil" not in repr(ran)
    assert type(ran[0]) is type(value)


@pytest.mark.parametrize(
    ("value", "read", "answer"),
    [
        (Answering(path="safe"), lambda value: value["path"], "safe"),
        (Speaking("ls"), str, "ls"),
        (Elsewhere("safe"), lambda value: value.__fspath__(), "safe"),
        (Names(["safe"]), type, Names),
        (memoryview(b"abc"), bytes, b"abc"),
        (memoryview(b"abcd").cast("H"), lambda value: value.format, "H"),
    ],
)
def test_a_class_with_answers_of_its_own_becomes_what_was_shown(
    value: Any, read: Any, answer: Any
) -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("allow")) as captured:
        captured.governor.govern(lambda x: ran.append(read(x)), name="tool")(value)
    assert ran == [answer]


@pytest.mark.parametrize(
    "value", [TwoFaced.SAFE, "a\udcff", {"a\udcff": 1}, {Speaking("a"), "a"}], ids=repr
)
def test_what_can_not_be_shown_as_it_runs_is_not_decided(value: Any) -> None:
    def tool(x: Any) -> None:
        raise AssertionError("ran")

    class Odd(Speaking):
        def __hash__(self) -> int:
            return 7

    # two members that are one once they are plain
    value = {Odd("a"), "a"} if isinstance(value, set) else value
    with capture(policy=StaticEngine("allow")) as captured, pytest.raises(ToolDenied) as denied:
        captured.governor.govern(tool)(value)
    assert denied.value.error_class == "policy_blocked"


def test_common_objects_reach_the_tool_as_they_are() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")

    class Colour(enum.Enum):
        RED = "red"

    class Level(str, enum.Enum):  # noqa: UP042 - tools that are in use have it
        HIGH = "high"

    values = [
        Colour.RED,
        Level.HIGH,
        Path("a"),
        numpy.float64(1.5),
        numpy.zeros(2),
        pandas.Timestamp("2026-01-02"),
        pandas.DataFrame({"a": [1]}),
        __import__("os").stat("."),
        threading.Lock(),
    ]
    ran: list[Any] = []
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(ran.append, name="tool")
        for value in values:
            governed(value)
    assert all(got is value for got, value in zip(ran, values, strict=True))


def test_an_argument_is_copied_before_it_is_shown() -> None:
    """Else another thread changes it between the two; the conversion itself stands for that thread
    here.
    """
    ran: list[Any] = []
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        import agenttool_otel.call.binding as binding

        items = ["safe"]
        shown = binding.to_policy_value

        def meddling(value: Any) -> Any:
            items.append("evil")
            return shown(value)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(binding, "to_policy_value", meddling)
            captured.governor.govern(lambda items: ran.append(items), name="take")(items)
    assert ran == [["safe"]]
    assert engine.documents[0]["input"] == {"items": ["safe"]}


# --- the developer's own code ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"validate": lambda a: a.update(path="safe")}, {"read_only": lambda a: a.pop("path") is None}],
)
def test_a_check_that_changes_its_argument_changes_no_decision(options: Any) -> None:
    engine, ran = StaticEngine("allow"), []

    def tool(path: str) -> None:
        ran.append(path)

    with capture(policy=engine) as captured:
        captured.governor.govern(tool, **options)("/etc/shadow")
    assert engine.documents[0]["input"] == {"path": "/etc/shadow"}
    assert ran == ["/etc/shadow"]


def test_a_default_that_has_changed_is_decided_as_it_runs() -> None:
    paths, ran = ["safe"], []

    def tool(x: str, paths: list[str] = paths) -> None:
        ran.append(paths)
        paths.append("what the tool did to it")

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(tool)
        paths.append("/etc/shadow")
        governed("a")
        governed.tool.invoke(x="a")
        governed.__defaults__ = (["other"],)
        governed("a")
    assert [document["input"]["paths"] for document in engine.documents] == [
        ["safe", "/etc/shadow"]
    ] * 3
    assert [got[:2] for got in ran] == [["safe", "/etc/shadow"]] * 3


# --- secrets that are keys ------------------------------------------------------------------------


def test_a_key_that_is_a_secret_is_in_no_message_and_no_event() -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({"x": 1, "env": {TOKEN: 2}}) if ctx.arguments["env"] else None,
        "pre_tool_use",
    )

    def tool(x: int, env: dict[str, int] | None = None) -> None: ...

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(tool)
        told: list[str] = []
        with pytest.raises(ToolInputInvalid) as invalid:
            governed(1, **{TOKEN: 1})
        told.append(str(invalid.value) + repr(invalid.value.result))
        told.append(repr(governed.tool.invoke({"x": 1, "env": {TOKEN: "bad"}})))
        governed(1, {TOKEN: 1})
        told += [span.to_json() for span in captured.spans]
        told += [event.model_dump_json() for event in captured.events]
    assert not [text for text in told if TOKEN in text]


def test_an_approved_coerced_call_runs_in_another_process() -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        governed = governor.govern(_typed(Request, ran))
        with pytest.raises(ApprovalRequired) as asked:
            governed(Request(name="n"))
        governor.approvals.store.answer(
            asked.value.request_id, ApprovalAnswer(True, answered_by="user:h")
        )
        governor.pipeline.paused.take(asked.value.invocation_id)
        assert governor.resume(asked.value.invocation_id).status == "succeeded"
    assert ran == [Request(name="n")]
