"""Blocking work that asynchronous code waits for, and that is not cut off when its task is
canceled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def run_to_completion(function: Callable[[], _T]) -> tuple[_T, asyncio.CancelledError | None]:
    """Run a blocking function to its end in a worker thread: a cancellation must not hide what was
    committed.
    """
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(task), None
    except asyncio.CancelledError as canceled:
        try:
            return await task, canceled
        except Exception:
            raise canceled from None
