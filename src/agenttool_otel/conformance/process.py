"""The process of a subject: requests go to its standard input, replies come from its standard output.

One JSON-RPC 2.0 message a line, one request at a time. What the subject writes to standard error
passes through.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from agenttool_otel.records.base import JsonObject

DEFAULT_TIME_LIMIT_S: Final = 60.0
_MAX_LINE_BYTES: Final = 64 * 1024 * 1024
_CLOSE_S: Final = 5.0  # for a subject to end once its input has ended
_MAX_SHOWN: Final = 200  # characters of a subject's output in a message

NOT_IMPLEMENTED: Final = -32601
"""JSON-RPC's code of a method that is not found."""


class SubjectError(Exception):
    """A subject answered a request with an error."""


class SubjectLacksError(SubjectError):
    """A subject does not implement what a request asks for."""


class SubjectBrokenError(SubjectError):
    """A subject ended, did not answer in time, or wrote something that is no reply.

    Its process can't be used further.
    """


class SubjectProcess:
    """A running subject.

    Args:
        command: program and arguments.
        time_limit: seconds in which each request has to be answered.

    Raises:
        OSError: the program can't be started.
    """

    def __init__(self, command: Sequence[str], *, time_limit: float = DEFAULT_TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._last_id = 0
        self._runner = asyncio.Runner()
        try:
            self._process = self._runner.run(_start(command))
        except BaseException:
            self._runner.close()
            raise

    def request(self, method: str, params: JsonObject) -> Any:
        """Send a request and return its result.

        Args:
            method: the request's name.
            params: its content.

        Raises:
            SubjectLacksError: the subject does not implement it.
            SubjectBrokenError: the subject ended, did not answer in time, or gave no proper reply.
            SubjectError: the subject answered with an error.
        """
        self._last_id += 1
        message = {
            "jsonrpc": "2.0",
            "id": self._last_id,
            "method": method,
            "params": params,
        }
        line = json.dumps(message).encode() + b"\n"
        reply = self._runner.run(self._exchange(method, line))
        return _result(method, _parse(method, reply), self._last_id)

    def close(self) -> None:
        """End the process: its input ends, and after five seconds it is killed."""
        try:
            self._runner.run(self._end())
        finally:
            self._runner.close()

    @property
    def exit_code(self) -> int | None:
        """Its exit code; ``None`` while it runs, negative where a signal ended it."""
        return self._process.returncode

    async def _exchange(self, method: str, line: bytes) -> bytes:
        """Write a line and return the next one that the subject writes."""
        try:
            async with asyncio.timeout(self._time_limit):
                reply = await self._write_and_read(line)
        except TimeoutError:
            message = f"no reply to {method} within {self._time_limit:g} s"
            raise SubjectBrokenError(message) from None
        except ValueError:
            # asyncio's word for a line over the limit
            message = f"the reply to {method} is longer than {_MAX_LINE_BYTES} bytes"
            raise SubjectBrokenError(message) from None
        if reply:
            return reply
        code = await self._wait_for_code()
        raise SubjectBrokenError(f"the subject ended during {method}, exit code {code}")

    async def _write_and_read(self, line: bytes) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101
        assert stdout is not None  # noqa: S101
        # a subject that has ended reads nothing: what it wrote before is still to be read
        with suppress(ConnectionError):
            stdin.write(line)
            await stdin.drain()
        return await stdout.readline()

    async def _wait_for_code(self) -> int | str:
        """Return the exit code, or that it goes on although its output has ended."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                return await self._process.wait()
        except TimeoutError:
            return "unknown: its output has ended, but it goes on"

    async def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                # with what it started: `npm run subject` starts a node
                os.killpg(self._process.pid, signal.SIGKILL)


async def _start(command: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
        start_new_session=True,
    )


def _parse(method: str, line: bytes) -> JsonObject:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if isinstance(message, dict):
        return message
    shown = line[:_MAX_SHOWN].decode("utf-8", "replace").strip()
    raise SubjectBrokenError(
        f"the reply to {method} is no JSON object (logs belong on standard error): {shown}"
    )


def _result(method: str, message: JsonObject, request_id: int) -> Any:
    if message.get("id") != request_id:
        raise SubjectBrokenError(
            f"the reply to {method} has id {message.get('id')!r}, not {request_id}"
        )
    if "result" in message:
        return message["result"]
    error = message.get("error")
    if not isinstance(error, dict):
        raise SubjectBrokenError(f"the reply to {method} has neither result nor error")
    text = str(error.get("message") or "no message")[:_MAX_SHOWN]
    if error.get("code") == NOT_IMPLEMENTED:
        raise SubjectLacksError(text)
    raise SubjectError(f"the subject answered {method} with an error: {text}")
