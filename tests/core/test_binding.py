"""What runs is exactly what was decided: from a call to arguments by name, and back to a call."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel import ApprovalRequired, ConfigurationError, ToolInputInvalid, agent_context
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.catalog.signature import read_parameters
from agenttool_otel.errors import InstanceMissing
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

P = inspect.Parameter
NAMES = ("a", "b", "c", "d", "e", "f")


@st.composite
def signatures(draw: st.DrawFn) -> inspect.Signature:
    """Every order of kinds that Python allows, with defaults where it allows them."""
    kinds = sorted(
        draw(
            st.lists(
                st.sampled_from([P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD, P.KEYWORD_ONLY]),
                max_size=len(NAMES),
            )
        )
    )
    parameters: list[P] = []
    defaults_from = draw(st.integers(0, len(NAMES)))
    for index, kind in enumerate(kinds):
        optional = draw(st.booleans()) if kind is P.KEYWORD_ONLY else index >= defaults_from
        default = f"default of {NAMES[index]}" if optional else P.empty
        parameters.append(P(NAMES[index], kind, default=default))
    if draw(st.booleans()):
        at = sum(kind is not P.KEYWORD_ONLY for kind in kinds)
        parameters.insert(at, P("more", P.VAR_POSITIONAL))
    if draw(st.booleans()):
        parameters.append(P("rest", P.VAR_KEYWORD))
    return inspect.Signature(parameters)


@st.composite
def calls(draw: st.DrawFn) -> tuple[inspect.Signature, dict[str, Any]]:
    signature = draw(signatures())
    bound: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is P.VAR_POSITIONAL:
            if draw(st.booleans()):
                bound[name] = tuple(f"more {n}" for n in range(draw(st.integers(0, 3))))
        elif parameter.kind is P.VAR_KEYWORD:
            if draw(st.booleans()):
                bound[name] = {
                    key: f"rest {key}"
                    for key in draw(st.sets(st.sampled_from(["x", "y", "rest", "more"])))
                }
        elif parameter.default is P.empty or draw(st.booleans()):
            bound[name] = f"given {name}"
    return signature, bound


def _filled(signature: inspect.Signature, bound: dict[str, Any]) -> dict[str, Any]:
    arguments = inspect.BoundArguments(signature, {**bound})  # type: ignore[arg-type]
    arguments.apply_defaults()
    return dict(arguments.arguments)


@given(calls())
def test_no_argument_ever_comes_to_stand_for_another_one(
    case: tuple[inspect.Signature, dict[str, Any]],
) -> None:
    signature, bound = case

    def function(*args: Any, **kwargs: Any) -> Any:
        got = signature.bind(*args, **kwargs)
        got.apply_defaults()
        return dict(got.arguments)

    function.__signature__ = signature  # type: ignore[attr-defined]
    parameters = read_parameters(function)
    args, kwargs = parameters.unbind(bound)
    assert function(*args, **kwargs) == _filled(signature, bound)
    assert _filled(signature, parameters.bind(args, kwargs)) == _filled(signature, bound)


@given(calls())
def test_the_models_view_of_a_call_gives_the_same_call(
    case: tuple[inspect.Signature, dict[str, Any]],
) -> None:
    signature, bound = case
    if "more" in bound.get("rest", {}) and "more" in signature.parameters:
        bound["rest"].pop("more")

    def function(*args: Any, **kwargs: Any) -> None: ...

    function.__signature__ = signature  # type: ignore[attr-defined]
    parameters = read_parameters(function)
    again = parameters.spread(parameters.flatten(bound))
    if "more" in again:
        again["more"] = tuple(again["more"])
    assert _filled(signature, again) == _filled(signature, bound)


def test_positional_arguments_never_slide_into_an_omitted_one() -> None:
    ran: list[Any] = []

    def read(path: str = "README.md", *labels: str) -> None:
        ran.append((path, labels))

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        captured.governor.govern(read).tool.invoke(labels=["/etc/passwd"])
    assert engine.documents[0]["input"] == {"path": "README.md", "labels": ["/etc/passwd"]}
    assert ran == [("README.md", ("/etc/passwd",))]


def test_a_keyword_that_hides_a_positional_only_name_is_refused() -> None:
    def read(path: str, /, **rest: str) -> None:
        raise AssertionError("ran")

    with capture(policy=StaticEngine("allow")) as captured, pytest.raises(ToolInputInvalid):
        captured.governor.govern(read)("/etc/shadow", path="/safe")


def test_an_edit_of_a_keyword_called_like_kwargs_is_used() -> None:
    ran: list[Any] = []

    def tool(**kw: str) -> None:
        ran.append(kw)

    approver = FixedApprover(
        ApprovalAnswer(True, answered_by="user:h", edited_input={"kw": "safe"})
    )
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        captured.governor.govern(tool)(kw="evil")
    assert ran == [{"kw": "safe"}]


def test_keywords_that_an_edit_leaves_out_are_not_run() -> None:
    ran: list[Any] = []

    def tool(x: str, **kw: str) -> None:
        ran.append((x, kw))

    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:h", edited_input={"x": "a"}))
    with capture(policy=StaticEngine({"tool": decision("ask")}), approver=approver) as captured:
        captured.governor.govern(tool)("a", danger="evil")
    assert ran == [("a", {})]


# --- methods --------------------------------------------------------------------------------------


def _files(captured: Any) -> tuple[type[Any], list[Any]]:
    ran: list[Any] = []

    class Files:
        @captured.governor.govern
        def copy(self, src: str, dst: str = "/tmp/x") -> None:
            ran.append((type(self).__name__, src, dst))

    return Files, ran


def test_a_method_without_its_instance_is_refused_undecided() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        files, ran = _files(captured)
        with pytest.raises(InstanceMissing):
            files.copy.tool.invoke(src="public", dst="secret")
        with pytest.raises(InstanceMissing):
            files.__dict__["copy"]()
        # a preflight runs nothing, so it needs no instance
        assert files.copy.tool.check(src="public").allowed
        files().copy.tool.invoke(src="a")
        files.copy(files(), "b")
        files.__dict__["copy"](files(), "c", "d")
    assert ran == [("Files", "a", "/tmp/x"), ("Files", "b", "/tmp/x"), ("Files", "c", "d")]


def test_an_approved_method_of_an_unknown_instance_is_kept() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        files, ran = _files(captured)
        with pytest.raises(ApprovalRequired) as asked:
            files().copy("public", "secret")
        governor.approvals.store.answer(
            asked.value.request_id, ApprovalAnswer(True, answered_by="user:h")
        )
        # as in another process
        remembered = governor.pipeline.paused.take(asked.value.invocation_id)
        with pytest.raises(InstanceMissing):
            governor.resume(asked.value.invocation_id)
        assert ran == []
        governor.pipeline.paused._calls[asked.value.invocation_id] = remembered
        assert governor.resume(asked.value.invocation_id).status == "succeeded"
        assert ran == [("Files", "public", "secret")]


def test_the_wrong_way_to_resume_a_method_keeps_its_instance() -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor

        class Files:
            @governor.govern
            async def copy(self, src: str) -> None:
                ran.append(src)

        with pytest.raises(ApprovalRequired) as asked:
            asyncio.run(Files().copy("public"))
        governor.approvals.store.answer(
            asked.value.request_id, ApprovalAnswer(True, answered_by="user:h")
        )
        with pytest.raises(TypeError, match="aresume"):
            governor.resume(asked.value.invocation_id)
        assert asyncio.run(governor.aresume(asked.value.invocation_id)).status == "succeeded"
    assert ran == ["public"]


def test_underscored_variable_arguments_are_shown() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        captured.governor.govern(lambda *_args, **_kw: None, name="tool")("/etc/shadow", more=["x"])
    assert engine.documents[0]["input"] == {"_args": ["/etc/shadow"], "more": ["x"]}


def test_an_unresolvable_annotation_spoils_no_other_argument() -> None:
    def tool(x: int, target: Optional[NoSuchThing] = None) -> None:  # type: ignore[name-defined]  # noqa: F821, UP045
        ran.append(target)

    ran: list[Any] = []
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(tool)
        governed(1, "/etc/shadow")
        assert governed.tool.invoke(x="no number", target="x").status == "failed"
    assert engine.documents[0]["input"] == {"x": 1, "target": "/etc/shadow"}


@pytest.mark.parametrize(
    "facts", [{"actor": 5}, {"roles": "admin"}, {"roles": [1]}, {"session_id": b"s"}]
)
def test_a_context_that_allows_no_decision_is_refused_when_set(facts: Any) -> None:
    with pytest.raises(ConfigurationError), agent_context(**facts):
        pass
