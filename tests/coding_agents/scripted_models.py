"""Stand-ins of the APIs that agents ask a model by: they make an agent run the commands of a list,
one after the other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = tuple[str, dict[str, Any]]
_ENDS = "I am done."


@dataclass
class Script:
    """What the model does, and what it has seen.

    Attributes:
        commands: what it wants to run, in order.
        tool: the agent's tool that runs a command.
        arguments: its arguments beside the command.
        seen: the results of its calls, as the agent gave them.
    """

    commands: Sequence[str]
    tool: str
    arguments: dict[str, Any]
    seen: list[str] = field(default_factory=list)

    def next_call(self, request: dict[str, Any], results: list[Any]) -> str | None:
        """Return the arguments of the model's next call; ``None`` where it is done.

        Args:
            request: what the agent asks.
            results: the results in it.
        """
        # titles and summaries are asked for without tools
        if not request.get("tools"):
            return None
        self.seen = [json.dumps(result) for result in results]
        number = len(results)
        if number == len(self.commands):
            return None
        return json.dumps({"command": self.commands[number], **self.arguments})


def anthropic_events(script: Script, request: dict[str, Any]) -> Iterator[Event]:
    """Return the events of an answer of the Messages API."""
    results = [
        part
        for message in request["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "tool_result"
    ]
    arguments = script.next_call(request, results)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_script",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield "message_start", {"message": message}
    if arguments is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": _ENDS}
        reason = "end_turn"
    else:
        call_id = f"toolu_script_{len(results)}"
        block = {"type": "tool_use", "id": call_id, "name": script.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        reason = "tool_use"
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": usage}
    yield "message_stop", {}


def openai_events(script: Script, request: dict[str, Any]) -> Iterator[Event]:
    """Return the chunks of an answer of the Chat Completions API."""
    results = [message for message in request["messages"] if message["role"] == "tool"]
    arguments = script.next_call(request, results)
    delta: dict[str, Any] = {"role": "assistant", "content": _ENDS}
    reason = "stop"
    if arguments is not None:
        call = {
            "index": 0,
            "id": f"call_script_{len(results)}",
            "type": "function",
            "function": {"name": script.tool, "arguments": arguments},
        }
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls"
    for part, ended in ((delta, None), ({}, reason)):
        choice = {"index": 0, "delta": part, "finish_reason": ended}
        yield (
            "",
            {
                "id": "chatcmpl-script",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": request["model"],
                "choices": [choice],
            },
        )


Events = Callable[[Script, dict[str, Any]], Iterator[Event]]


class _Model(BaseHTTPRequestHandler):
    def __init__(self, script: Script, events: Events, *rest: Any) -> None:
        self._script = script
        self._events = events
        super().__init__(*rest)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not request.get("stream"):
            self.send_error(404)  # counting tokens, and the like
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for name, data in self._events(self._script, request):
            head = f"event: {name}\n" if name else ""
            body = {"type": name, **data} if name else data
            self.wfile.write(f"{head}data: {json.dumps(body)}\n\n".encode())
        if self._events is openai_events:
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def scripted_model(events: Events, script: Script) -> Iterator[str]:
    """Answer an agent on loopback, and yield the address.

    Args:
        events: makes the events of an answer.
        script: what the model does.
    """
    handler = partial(_Model, script, events)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
