"""A door of a framework whose tools are awaited passes the test of doors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.foreign import ForeignCall, ForeignTool, foreign_tool
from agenttool_otel.testing.doors import (
    DOOR_CHECKS,
    Body,
    DoorDriver,
    approved_call_resumes_in_another_process,
)


@dataclass
class AwaitedTool:
    name: str
    schema: Mapping[str, Any]
    body: Body
    handle: ForeignTool | None = None


class AwaitedDriver(DoorDriver):
    is_async = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        return AwaitedTool(name, schema, body)

    def govern(self, governor: Governor, tool: Any) -> Any:
        handle = foreign_tool(
            tool.name,
            tool.schema,
            source="awaited",
            facts={tool.name: {"read_only": True, "concurrency_safe": True}},
            is_async=True,
            governor=governor,
        )
        handle.register()
        return AwaitedTool(tool.name, tool.schema, tool.body, handle)

    def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        return ForeignCall(tool.handle, arguments, call_id).arun(tool.body)

    def resume(self, tool: Any, ref: str) -> Any:
        return ForeignCall(tool.handle, None).resume(ref).arun(tool.body)

    def schema(self, tool: Any) -> Mapping[str, Any]:
        schema: Mapping[str, Any] = tool.schema
        return schema


# the other process can't import a driver from a file of tests
HERE = [check for check in DOOR_CHECKS if check is not approved_call_resumes_in_another_process]


@pytest.mark.parametrize("check", HERE, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(AwaitedDriver())
