"""What stands between a generator's body and its consumer, where something has to be seen, kept,
redacted or limited.

Most streams have none: then nothing of this runs. An obligation of the policy binds item by item,
before the consumer sees it; a collector gets each item as the consumer does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.results.content.size import is_measured, measure
from agenttool_otel.results.persistence.stream import StreamCollector, StreamOutcome
from agenttool_otel.results.transform import ItemCleaner

_MAX_GATHERED_BYTES: Final = 8 << 20
"""Bytes of a collected stream that stay in memory; beyond that, what is in the store is enough."""

_LIMITED_TEXT: Final = "[output limited by the policy]"


@dataclass(slots=True, eq=False, kw_only=True)
class StreamTap:
    """Watches one run of a generator."""

    on_first_item: Callable[[], None]
    collector: StreamCollector | None = None
    cleaner: ItemCleaner | None = None
    left: int | None = None  # how much of the policy's limit is left, in the items' own measure
    on_item: Callable[[int, int | None], None] | None = None
    on_redacted: Callable[[bool], None] | None = None
    items: int = field(default=0, init=False)
    gathers: bool = field(default=False, init=False)
    _withheld: int = field(default=0, init=False)
    _spilled: bool = field(default=False, init=False)
    _outcome: StreamOutcome | None = field(default=None, init=False)
    _finished: bool = field(default=False, init=False)

    @property
    def may_block(self) -> bool:
        """Whether the next item may have to wait for a store."""
        return self.collector is not None and self.collector.uploading

    @property
    def spilled(self) -> bool:
        """Whether so much is in the store that it need not stay in memory."""
        if not self._spilled and self.collector is not None and self.collector.uploading:
            self._spilled = self.collector.total_bytes > _MAX_GATHERED_BYTES
        return self._spilled

    def take(self, item: Any) -> list[Any]:
        """Take what the body yielded, and return what the consumer gets now; never raises."""
        if self.cleaner is None:
            return self._shown([item])
        return self._shown(self.cleaner.feed(item))

    def rest(self) -> list[Any]:
        """End a stream that ran to its end, and return what the consumer still gets; may wait for a
        store.
        """
        ready: list[Any] = []
        if self.cleaner is not None:
            ready = self._shown(self.cleaner.finish())
        outcome = self.finish()
        if self._withheld:
            place = ""
            if outcome is not None and outcome.ref:
                place = f" Full output saved to {outcome.ref.uri}."
            ready.append(f"[{self._withheld} items withheld by the policy.{place}]")
        return ready

    def finish(self) -> StreamOutcome | None:
        """End the stream, once; never raises, may wait for a store."""
        if self._finished:
            return self._outcome
        self._finished = True
        if self.cleaner is not None and self.on_redacted is not None:
            self.on_redacted(self.cleaner.failed)
        if self.collector is not None:
            self._outcome = self.collector.finish()
        return self._outcome

    def clean(self, value: Any) -> Any:
        """Redact the body's return value, which a consumer may look at too."""
        if self.cleaner is None or value is None:
            return value
        return self.cleaner.redact(value)

    def _shown(self, items: list[Any]) -> list[Any]:
        for item in items:
            if self.items == 0:
                self.on_first_item()
            size = None
            if self.collector is not None:
                size = self.collector.add(item)
            elif self.on_item is not None:
                size = measure(item).bytes
            if self.on_item is not None:
                self.on_item(self.items, size)
            self.items += 1
        if self.left is None:
            return items
        return [self._limited(item) for item in items]

    def _limited(self, item: Any) -> Any:
        cost = len(item) if type(item) is str else measure(item).bytes
        if cost is not None and self._has_room(item, cost):
            self.left = (self.left or 0) - cost
            return item
        self._withheld += 1
        # of its own type: "".join and b"".join of the items go on to work
        if type(item) is bytes:
            return b""
        if type(item) is str and self._withheld > 1:
            return ""
        return _LIMITED_TEXT

    def _has_room(self, item: Any, cost: int) -> bool:
        # after the first item that was withheld, none comes: the end of a text without its middle
        # would mislead
        if self._withheld or not is_measured(item, cost):
            return False
        return self.left is not None and cost <= self.left


def guard(tap: StreamTap, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a generator behind a tap; what is sent and thrown reaches it."""
    with closing(body):
        sent: Any = None
        thrown: BaseException | None = None
        returned: Any = None
        while True:
            try:
                item = body.send(sent) if thrown is None else body.throw(thrown)
            except StopIteration as stop:
                returned = stop.value
                break
            sent = thrown = None
            for ready in tap.take(item):
                try:
                    sent = yield ready
                except GeneratorExit:
                    raise
                except BaseException as error:
                    thrown = error
        yield from tap.rest()
        return tap.clean(returned)


async def aguard(tap: StreamTap, body: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """The same for an asynchronous generator."""
    async with aclosing(body):
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            try:
                item = await _resumed(body, sent, thrown)
            except StopAsyncIteration:
                break
            sent = thrown = None
            for ready in await _taken(tap, item):
                try:
                    sent = yield ready
                except GeneratorExit:
                    raise
                except BaseException as error:
                    thrown = error
        for ready in await asyncio.to_thread(tap.rest):
            yield ready


def _resumed(
    body: AsyncGenerator[Any, Any], sent: Any, thrown: BaseException | None
) -> Awaitable[Any]:
    if thrown is not None:
        return body.athrow(thrown)
    return body.asend(sent)


async def _taken(tap: StreamTap, item: Any) -> list[Any]:
    # a store may take seconds, in which the event loop must not stand still
    if tap.may_block:
        return await asyncio.to_thread(tap.take, item)
    return tap.take(item)


def collected(
    open_tap: Callable[[], StreamTap], function: Callable[..., Any], is_async: bool
) -> Callable[..., Any]:
    """Turn a generator function into one that returns the list of its items.

    A stream of which more is in a store than should be in memory becomes its preview instead."""
    if is_async:

        async def acollect(*args: Any, **kwargs: Any) -> Any:
            """Gather the items of one run."""
            tap = open_tap()
            items: list[Any] = []
            async for item in aguard(tap, function(*args, **kwargs)):
                if tap.spilled:
                    items.clear()
                else:
                    items.append(item)
            return _gathered(tap, items)

        return acollect

    def collect(*args: Any, **kwargs: Any) -> Any:
        tap = open_tap()
        items: list[Any] = []
        for item in guard(tap, function(*args, **kwargs)):
            if tap.spilled:
                items.clear()
            else:
                items.append(item)
        return _gathered(tap, items)

    return collect


def _gathered(tap: StreamTap, items: list[Any]) -> Any:
    outcome = tap.finish()
    if tap.spilled and outcome is not None:
        return outcome.preview
    return items
