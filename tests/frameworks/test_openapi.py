"""The operations of an OpenAPI document as governed tools."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from openapi_driver import OpenApiDriver

from agenttool_otel import ConfigurationError
from agenttool_otel.integrations.openapi import openapi_tools
from agenttool_otel.testing import StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS

PET = {"type": "object", "properties": {"tag": {"$ref": "#/components/schemas/Tag"}}}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "components": {
        "schemas": {"Pet": PET, "Tag": {"type": "string"}, "Other": {"type": "string"}},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "parameters": {"id": {"name": "id", "in": "path", "schema": {"type": "string"}}},
    },
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {
                "operationId": "get_pet",
                "parameters": [
                    {"name": "fields", "in": "query", "schema": {"type": "string"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                    {"name": "X-Key", "in": "header", "schema": {"type": "string"}},
                ],
            },
            "put": {
                "operationId": "put_pet",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    },
                },
            },
            "delete": {"operationId": "delete_pet"},
        },
        "/upload": {
            "post": {"operationId": "upload", "requestBody": {"content": {"image/png": {}}}}
        },
        "/search": {
            "get": {
                "operationId": "search",
                "parameters": [{"name": "filter", "in": "query", "schema": {"type": "object"}}],
            }
        },
        "//other.example/pets": {"get": {"operationId": "elsewhere"}},
        "/session": {
            "get": {
                "operationId": "session",
                "parameters": [{"name": "id", "in": "cookie", "schema": {"type": "string"}}],
            }
        },
    },
}
SENT: list[httpx.Request] = []


def answer(request: httpx.Request) -> httpx.Response:
    SENT.append(request)
    if request.url.path == "/pets/none":
        return httpx.Response(404)
    return httpx.Response(200, json={"path": request.url.path})


def client() -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(answer), base_url="https://pets.example")


def tools_of(captured: Any, **options: Any) -> Any:
    return openapi_tools(DOCUMENT, client(), governor=captured.governor, **options)


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(OpenApiDriver())


def test_arguments_go_where_the_document_has_them() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        arguments = {"id": "a/b", "fields": "name", "X-Trace": "t"}
        result = tools_of(captured)["get_pet"].invoke(arguments)
    assert result.value == {"path": "/pets/a/b"}
    assert str(SENT[0].url) == "https://pets.example/pets/a%2Fb?fields=name"
    assert SENT[0].headers["X-Trace"] == "t"


def test_a_body_is_sent_as_json() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tools_of(captured)["put_pet"].invoke({"id": "a", "body": {"tag": "cat"}})
    assert SENT[0].content == b'{"tag":"cat"}'


def test_shared_schemas_come_with_a_tool() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tools = tools_of(captured)
        assert sorted(tools["put_pet"].spec.interface.model_input_schema["$defs"]) == ["Pet", "Tag"]
        assert tools["put_pet"].invoke({"id": "a", "body": {"tag": 3}}).is_error
    assert SENT == []


@pytest.mark.parametrize("value", ["", ".", "..", "a/../../admin", "a\\..\\admin"])
def test_an_argument_can_not_lead_to_another_operation(value: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert tools_of(captured)["get_pet"].invoke({"id": value}).is_error
    assert SENT == []


@pytest.mark.parametrize("name", ["Authorization", "X-Key"])
def test_credentials_are_no_arguments(name: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = tools_of(captured)["get_pet"].invoke({"id": "a", name: "x"})
    assert result.is_error
    assert SENT == []


def test_a_tool_has_the_operations_ids() -> None:
    document = {**DOCUMENT, "security": [{"key": []}]}
    remote = httpx.Client(base_url="https://user:word@pets.example/v1")
    with capture(policy=StaticEngine("allow")) as captured:
        tool = openapi_tools(document, remote, governor=captured.governor)["get_pet"]
    mapping = tool.spec.declaration.external_mappings[-1]
    assert mapping.model_dump(mode="json", exclude_none=True) == {
        "source": "openapi",
        "operation_id": "get_pet",
        "method": "GET",
        "path": "/pets/{id}",
        "server_url": "https://pets.example/v1/",
        "security_scheme_refs": ["key"],
    }


def test_operations_of_one_name_are_not_mixed_up() -> None:
    paths = {"/a": {"get": {"operationId": "x"}}, "/b": {"delete": {"operationId": "x"}}}
    with capture(policy=StaticEngine("allow")) as captured:
        document = {"openapi": "3.1.0", "paths": paths}
        openapi_tools(document, client(), governor=captured.governor)["x"].invoke({})
    assert [(request.method, request.url.path) for request in SENT] == [("GET", "/a")]


def test_a_name_is_made_of_what_models_accept() -> None:
    document = {"openapi": "3.1.0", "paths": {"/pets/{id}/tags": {"get": {}}}}
    with capture(policy=StaticEngine("allow")) as captured:
        assert list(openapi_tools(document, client(), governor=captured.governor)) == [
            "get_pets_id_tags"
        ]


def test_a_method_states_what_an_operation_does() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tools = tools_of(captured)
        tools["get_pet"].invoke({"id": "a"})
        tools["delete_pet"].invoke({"id": "a"})
    safety = [document["tool"] for document in engine.documents]
    assert [found["read_only"] for found in safety] == [True, False]
    assert [found["destructive"] for found in safety] == [False, True]


def test_stated_facts_come_before_the_methods() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tools = tools_of(captured, facts={"get_*": {"read_only": False}})
        tools["get_pet"].invoke({"id": "a"})
    assert engine.documents[0]["tool"]["read_only"] is False


def test_what_the_client_can_not_call_is_left_out() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert sorted(tools_of(captured)) == ["delete_pet", "get_pet", "put_pet"]


def test_a_failure_of_the_service_fails_the_call() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = tools_of(captured)["get_pet"].invoke({"id": "none"})
    assert result.status == "failed"


def test_an_asynchronous_client_makes_asynchronous_tools() -> None:
    remote = httpx.AsyncClient(
        transport=httpx.MockTransport(answer), base_url="https://pets.example"
    )
    with capture(policy=StaticEngine("allow")) as captured:
        tool = openapi_tools(DOCUMENT, remote, governor=captured.governor)["get_pet"]
        assert asyncio.run(tool.ainvoke({"id": "a"})).value == {"path": "/pets/a"}


def test_another_document_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="OpenAPI 3"):
        openapi_tools({"swagger": "2.0"}, client())
