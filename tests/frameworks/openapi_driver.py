"""How the test of doors calls the operations of an OpenAPI document: by a client without a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from invoked_driver import InvokedDriver

from agenttool_otel.integrations.openapi import openapi_tools
from agenttool_otel.testing.doors import Body


class Operation:
    """A service of one operation, not governed."""

    def __init__(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> None:
        self.schema, self._body = schema, body
        parameters = [
            {"name": key, "in": "query", "required": key in schema["required"], "schema": stated}
            for key, stated in schema["properties"].items()
        ]
        get = {"operationId": name, "description": description, "parameters": parameters}
        self.document = {"openapi": "3.1.0", "paths": {"/words": {"get": get}}}

    def client(self) -> httpx.Client:
        def answer(request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, text=self._body(dict(request.url.params)))

        return httpx.Client(transport=httpx.MockTransport(answer), base_url="https://words.example")


class OpenApiDriver(InvokedDriver):
    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        return Operation(name, description, schema, body)

    def govern(self, governor: Any, tool: Operation) -> Any:
        facts = {"*": {"read_only": True, "concurrency_safe": True}}
        tools = openapi_tools(tool.document, tool.client(), governor=governor, facts=facts)
        return tools["look_up"]
