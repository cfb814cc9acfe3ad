"""A framework: its tools take a dictionary and return a message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Message:
    text: str
    call_id: str
    failed: bool = False


@dataclass
class ToyTool:
    name: str
    description: str
    schema: dict[str, Any]
    function: Any

    def call(self, arguments: dict[str, Any], call_id: str) -> Message:
        return Message(self.function(arguments), call_id)


class Broken(ToyTool):
    """Tools whose door can't be imported."""


def with_text(message: Message, text: str) -> Message:
    return replace(message, text=text)
