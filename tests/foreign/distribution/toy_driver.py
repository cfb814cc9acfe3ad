"""How the conformance test calls the framework toy."""

from __future__ import annotations

from toy import ToyTool

from agenttool_otel.testing.doors import DoorDriver


class ToyDriver(DoorDriver):
    def make(self, name, description, schema, body):
        return ToyTool(name, description, schema, body)

    def call(self, tool, arguments, call_id):
        return tool.call(arguments, call_id)

    def resume(self, tool, ref):
        return tool.resume(ref)

    def schema(self, tool):
        return tool.schema

    def text(self, given):
        return given.text

    def is_refusal(self, given):
        return given.failed
