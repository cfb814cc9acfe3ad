"""Generators under governance: the span is current while the body runs and never in the consumer's
code.

Each step enters the call's scope, runs the body to its next item, remembers whatever context the
body left behind, and leaves again. Abandoning or closing a stream ends the call as what it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

from agenttool_otel.call.drivers import Steps, aadvance, advance
from agenttool_otel.call.envelope import outcome_of
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.running.handle import running_body
from agenttool_otel.call.steps import Attempt
from agenttool_otel.results.content.size import size_of


class _Scope:
    """The body's own view of the current span and call, entered for each step only."""

    __slots__ = ("_context", "_handle", "_inside", "_token")

    def __init__(self, call: Invocation, outer: Context) -> None:
        self._context = trace.set_span_in_context(call.span, outer)
        self._handle = call.handle

    def __enter__(self) -> None:
        self._token = otel_context.attach(self._context)
        self._inside = running_body.set(self._handle)

    def __exit__(self, *_: object) -> None:
        running_body.reset(self._inside)
        self._context = otel_context.get_current()
        otel_context.detach(self._token)


class _Tally:
    """Counts the items and, where it is known without work, the bytes of a stream."""

    __slots__ = ("_seen", "items", "size")

    def __init__(self, call: Invocation) -> None:
        self._seen = call.item_seen
        self.items = 0
        self.size: int | None = 0

    def add(self, item: Any) -> None:
        self.items += 1
        if self._seen is not None:
            self._seen(item)
        if self.size is not None:
            try:
                size = size_of(item)
            except Exception:
                size = None
            self.size = None if size is None else self.size + size

    def attempt(self, **facts: Any) -> Attempt:
        return Attempt(items=self.items, size=self.size, **facts)


def stream(call: Invocation, steps: Steps, outer: Context) -> Generator[Any, Any, Any]:
    """Run a governed generator lazily: nothing happens, and nothing is decided, before the first
    item is asked for.
    """
    token = otel_context.attach(outer)
    try:
        step = advance(call, steps)
    finally:
        otel_context.detach(token)
    if step is None:
        raise call.exception or outcome_of(call)
    scope, tally = _Scope(call, outer), _Tally(call)
    body: Any = None
    sent: Any = None
    thrown: BaseException | None = None
    try:
        with scope:
            body = step.target(*step.args, **step.kwargs)
        while True:
            with scope:
                item = body.send(sent) if thrown is None else body.throw(thrown)
            tally.add(item)
            thrown = None
            try:
                sent = yield item
            except GeneratorExit:
                with scope:
                    body.close()
                raise
            except BaseException as error:
                sent, thrown = None, error
    except StopIteration as stop:
        advance(call, steps, tally.attempt(value=stop.value))
        return stop.value
    except GeneratorExit:
        advance(call, steps, tally.attempt(abandoned=True))
        raise
    except BaseException as error:
        advance(call, steps, tally.attempt(exception=error))
        raise


async def astream(call: Invocation, steps: Steps, outer: Context) -> AsyncGenerator[Any, Any]:
    """The same for an asynchronous generator."""
    token = otel_context.attach(outer)
    try:
        step = await aadvance(call, steps)
    finally:
        otel_context.detach(token)
    if step is None:
        raise call.exception or outcome_of(call)
    scope, tally = _Scope(call, outer), _Tally(call)
    sent: Any = None
    thrown: BaseException | None = None
    try:
        with scope:
            body = step.target(*step.args, **step.kwargs)
        while True:
            with scope:
                item = await (body.asend(sent) if thrown is None else body.athrow(thrown))
            tally.add(item)
            thrown = None
            try:
                sent = yield item
            except GeneratorExit:
                with scope:
                    await body.aclose()
                raise
            except BaseException as error:
                sent, thrown = None, error
    except StopAsyncIteration:
        await aadvance(call, steps, tally.attempt())
    except GeneratorExit:
        advance(call, steps, tally.attempt(abandoned=True))
        raise
    except BaseException as error:
        await aadvance(call, steps, tally.attempt(exception=error))
        raise
