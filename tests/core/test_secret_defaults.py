"""A secret that is a default or an example leaves the process in no schema, and the tool runs with
it as before.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agenttool_otel import agent_context
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
PIN = "marigold-17"


class Login(BaseModel):
    user: str = "ada"
    pin: str = PIN
    password: str = "hT7kQ92mzXw0"


LOGIN = Login()


def stated(host: str, key_name: str = PIN) -> str:
    return key_name


def named(host: str, password: str = "hT7kQ92mzXw0") -> str:
    return password


def shaped(host: str, header: str = f"Bearer {TOKEN}") -> str:
    return header


def nested(host: str, login: Login = LOGIN) -> str:
    return login.pin


def with_examples(
    host: str, password: Annotated[str, Field(examples=["hT7kQ92mzXw0"])] = ""
) -> str:
    return password


CASES = [
    pytest.param(stated, {"sensitive_fields": ["key_name"]}, PIN, id="stated"),
    pytest.param(named, {}, "hT7kQ92mzXw0", id="by name"),
    pytest.param(shaped, {}, TOKEN, id="by shape"),
    pytest.param(nested, {"sensitive_fields": ["/login/pin"]}, PIN, id="by pointer"),
    pytest.param(nested, {}, "hT7kQ92mzXw0", id="nested by name"),
    pytest.param(with_examples, {}, "hT7kQ92mzXw0", id="example"),
    pytest.param(
        named, {"examples": [{"host": "a", "password": PIN}]}, PIN, id="example of the contract"
    ),
]


def left(captured: Capture, governed: Any) -> str:
    """All that leaves the process of a tool and a call of it."""
    governor = captured.governor
    with agent_context(session_id="s"):
        governed.tool.invoke(host="a")
        surface = governor.surface()
    parts: list[Any] = [
        governed.tool.declaration.to_json_object(),
        governed.tool.interface.to_json_object(),
        surface.mcp_tools(),
        surface.openai_tools(),
        captured.records,
        [span.to_json() for span in captured.spans],
    ]
    return json.dumps(parts, default=str)


@pytest.mark.covers("contract-defaults-where-safe")
@pytest.mark.parametrize(("function", "options", "secret"), CASES)
def test_no_schema_has_the_default_of_a_secret(
    function: Any, options: dict[str, Any], secret: str
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(function, **options)
        assert secret not in left(captured, governed)


@pytest.mark.parametrize("function", [stated, named, shaped, nested])
def test_a_tool_runs_with_its_secret_default(function: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(function, sensitive_fields=["*"])
        assert governed("a") == function("a") == governed.tool.invoke(host="a").value


def test_a_policy_decides_on_the_default_that_runs() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        captured.governor.govern(named)("a")
    assert engine.documents[0]["input"]["password"] == "hT7kQ92mzXw0"


def test_a_person_is_not_shown_a_secret_default() -> None:
    approver = FixedApprover(None)
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        captured.governor.govern(named).tool.invoke(host="a")
    assert "hT7kQ92mzXw0" not in approver.asked[0].model_dump_json()


def test_other_defaults_stay() -> None:
    def act(
        path: str = "notes.txt", page_token: str = "", password: str = "", limit: int = 10
    ) -> None:
        """Act."""

    with capture(policy=StaticEngine("allow")) as captured:
        contract = captured.governor.govern(act).tool.declaration.input_contract
    properties = contract.model_input_schema["properties"]
    assert {name: each["default"] for name, each in properties.items()} == contract.defaults
    assert contract.defaults == {
        "path": "notes.txt",
        "page_token": "",
        "password": "",
        "limit": 10,
    }
