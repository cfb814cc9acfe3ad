"""Bodies whose commands run on a layer: each attempt has one, and one that raises leaves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from agenttool_otel.call.rehearsal import RehearsedBody
from agenttool_otel.call.sandbox import Sandbox
from agenttool_otel.errors import SandboxUnavailable


class RehearsedFunction:
    """A plain body with a layer for its commands.

    Args:
        inside: the body, held.
        sandbox: what holds it.
        body: its layers.
    """

    __slots__ = ("_body", "_inside", "_sandbox")

    def __init__(self, inside: Callable[..., Any], sandbox: Sandbox, body: RehearsedBody) -> None:
        self._inside = inside
        self._sandbox = sandbox
        self._body = body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        body = self._body
        try:
            body.check_free()
            body.open()
            try:
                value = self._inside(*args, **kwargs)
            except BaseException:
                body.discard()
                raise
            body.seal()
        except SandboxUnavailable as error:
            self._sandbox.unavailable = error
            raise
        return value

    def __reduce__(self) -> NoReturn:
        raise TypeError("a body that is held can't travel to another process")


class RehearsedCoroutine(RehearsedFunction):
    """An asynchronous body with a layer for its commands."""

    __slots__ = ()

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        body = self._body
        try:
            body.check_free()
            await _to_its_end(body.open, body.discard)
            try:
                value = await self._inside(*args, **kwargs)
            except BaseException:
                await _to_its_end(body.discard)
                raise
            await _to_its_end(body.seal, body.end)
        except SandboxUnavailable as error:
            self._sandbox.unavailable = error
            raise
        return value


async def _to_its_end(step: Callable[[], None], undo: Callable[[], None] = lambda: None) -> None:
    """Take a step in a thread; where the task is canceled meanwhile, take it back first."""
    task = asyncio.ensure_future(asyncio.to_thread(step))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        await asyncio.to_thread(undo)
        raise
