"""IsolatedEngine: the embedded engine in a process of its own, which is killed at the deadline.

For policies whose running time nobody vouches for: an evaluation inside this process can't be
interrupted, one in a child process can. It costs a pipe's round trip for each decision. Crashes of
native code, which would take this process along, take the child along instead.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import selectors
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final

from agenttool_otel.errors import (
    PolicyEvaluationError,
    PolicyLoadError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import EngineName, EntryPoint, FailClosedCause
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.engines.evaluation import CompiledBundle, Instance
from agenttool_otel.policy.jsonio import (
    MAX_ANSWER_BYTES,
    MAX_INPUT_BYTES,
    decode_strict,
    encode_document,
)
from agenttool_otel.policy.rego.builtins import EMBEDDED_BUILTINS
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput
from agenttool_otel.values.forks import new_lock

_HEADER: Final = struct.Struct(">I")
_START_SECONDS: Final = 30.0
_Selector: Final = getattr(selectors, "PollSelector", selectors.DefaultSelector)
"""``poll`` where there is one: unlike ``epoll`` it takes no descriptor of its own for each wait."""


class _Child:
    """One child process that holds one bundle."""

    def __init__(self, bundle: Bundle, entry_points: Iterable[str]) -> None:
        # the package's own directory for the child's path, wherever it was imported from
        root = str(Path(__file__).resolve().parents[3])
        environment = {
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)]),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agenttool_otel.policy.engines.isolated"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        setup = {
            "modules": dict(bundle.modules),
            "data": bundle.data_json,
            "entry_points": list(entry_points),
        }
        try:
            if (
                reply := self.ask(json.dumps(setup).encode(), time.monotonic() + _START_SECONDS)
            ) != b"ready":
                raise PolicyLoadError(reply.decode())
        except BaseException:
            self.stop()
            raise

    def ask(self, message: bytes, deadline: float) -> bytes:
        """Send a message and return the reply."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        if pipe_in is None or pipe_out is None:
            raise PolicyUnavailable("the policy process has no pipes")
        try:
            self._send(pipe_in.fileno(), _HEADER.pack(len(message)) + message, deadline)
            size = _HEADER.unpack(self._receive(pipe_out.fileno(), _HEADER.size, deadline))[0]
            return self._receive(pipe_out.fileno(), size, deadline)
        except OSError:
            raise PolicyUnavailable(
                "the policy process ended", cause=FailClosedCause.ENGINE_PANIC
            ) from None

    @staticmethod
    def _wait(pipe: int, event: int, deadline: float) -> None:
        left = deadline - time.monotonic()
        # not select(): it can't wait for descriptors from 1024 on, and a server has many
        with _Selector() as selector:
            selector.register(pipe, event)
            if left <= 0 or not selector.select(left):
                raise PolicyTimeout("the evaluation took longer than its deadline, and was stopped")

    def _send(self, pipe: int, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._wait(pipe, selectors.EVENT_WRITE, deadline)
            # no more than a pipe is sure to take, so that the write itself does not block
            view = view[os.write(pipe, view[: select.PIPE_BUF]) :]

    def _receive(self, pipe: int, size: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            self._wait(pipe, selectors.EVENT_READ, deadline)
            if not (part := os.read(pipe, min(size, 65536))):
                raise BrokenPipeError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def stop(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class _Children:
    """Lends idle children of one bundle, and makes another when all are lent."""

    def __init__(self, bundle: Bundle, child: _Child, entry_points: tuple[str, ...]) -> None:
        self._lock = new_lock()
        self._entry_points = entry_points
        self._idle = [child]
        self._closed = False
        self.bundle = bundle

    def swap(self, bundle: Bundle, child: _Child) -> None:
        """Use another bundle from the next ``lend`` on."""
        with self._lock:
            self.bundle = bundle
            old, self._idle = self._idle, [child]
        for idle in old:
            idle.stop()

    def lend(self) -> tuple[Bundle, _Child]:
        """Return a child and the bundle that it holds; ``give_back`` it, or stop it."""
        with self._lock:
            if self._closed:
                raise PolicyUnavailable("the policy engine is closed")
            bundle = self.bundle
            if self._idle:
                return bundle, self._idle.pop()
        return bundle, _Child(bundle, self._entry_points)

    def give_back(self, bundle: Bundle, child: _Child) -> None:
        """Keep a child for the next question, or stop it when its bundle is no longer in use."""
        with self._lock:
            if bundle is self.bundle and not self._closed:
                self._idle.append(child)
                return
        child.stop()

    def close(self) -> None:
        """Stop the children that are idle; further ``lend`` raises PolicyUnavailable."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.stop()


class IsolatedEngine:
    """Evaluates a bundle in child processes."""

    name = EngineName.EMBEDDED.value  # it is the same evaluator
    capabilities = EngineCapabilities(builtins=EMBEDDED_BUILTINS, remote=True)

    def __init__(
        self,
        source: Bundle | str | Path,
        *,
        entry_points: Iterable[str] = (EntryPoint.DECISION,),
        max_input_bytes: int = MAX_INPUT_BYTES,
    ) -> None:
        self._entry_points = tuple(str(item) for item in entry_points)
        self._max_input_bytes = max_input_bytes
        bundle = source if isinstance(source, Bundle) else load_bundle(source)
        self._children = _Children(bundle, self._checked(bundle), self._entry_points)

    @property
    def revision(self) -> str:
        """Revision of the bundle in use."""
        return self._children.bundle.revision

    @property
    def bundle(self) -> Bundle:
        """The bundle in use."""
        return self._children.bundle

    def swap(self, bundle: Bundle) -> None:
        """Use another bundle from the next evaluation on."""
        self._children.swap(bundle, self._checked(bundle))

    def _checked(self, bundle: Bundle) -> _Child:
        # its text; the child evaluates it
        CompiledBundle(bundle, self._entry_points, fast=False, warm=False)
        return _Child(bundle, self._entry_points)

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate; see ``PolicyEngine``."""
        deadline = time.monotonic() + timeout
        body = encode_document(document, limit=self._max_input_bytes)
        bundle, child = self._children.lend()
        try:
            reply = child.ask(entry_point.encode() + b"\n" + body, deadline)
        except BaseException:
            child.stop()
            raise
        self._children.give_back(bundle, child)
        answer = decode_strict(reply, limit=MAX_ANSWER_BYTES)
        if "error" in answer:
            raise PolicyEvaluationError(
                str(answer["error"]), cause=FailClosedCause(answer["cause"])
            )
        return EngineAnswer(answer["value"], bundle.revision, bundle_digest=bundle.digest)

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Evaluate without blocking the event loop; as ``evaluate``."""
        return await asyncio.to_thread(self.evaluate, entry_point, document, timeout=timeout)

    def close(self) -> None:
        """End the children that are idle; further calls raise PolicyUnavailable."""
        self._children.close()


def _read(stream: BinaryIO) -> bytes | None:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    return stream.read(_HEADER.unpack(header)[0])


def _write(stream: BinaryIO, message: bytes) -> None:
    stream.write(_HEADER.pack(len(message)) + message)
    stream.flush()


def _serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer questions until the parent is gone."""
    setup = json.loads(_read(source) or b"{}")
    bundle = Bundle(modules=setup["modules"], data_json=setup["data"], revision="", digest="")
    try:
        instance = Instance(CompiledBundle(bundle, setup["entry_points"]))
    except PolicyLoadError as error:
        _write(target, str(error).encode())
        return
    _write(target, b"ready")
    while (message := _read(source)) is not None:
        entry_point, _, text = message.partition(b"\n")
        reply: dict[str, Any]
        try:
            reply = {"value": instance.evaluate(entry_point.decode(), text.decode("utf-8"))}
        except PolicyEvaluationError as error:
            reply = {"error": str(error), "cause": str(error.cause)}
        _write(target, json.dumps(reply).encode())


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
