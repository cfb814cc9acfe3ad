"""Work on many records, in processes where they are many."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.records.base import JsonObject

_Found = TypeVar("_Found")
Work = Callable[[JsonObject], _Found]
"""What is done with each line."""

_CHUNK: Final = 500


class PackedBundle(NamedTuple):
    """A bundle in a form that another process can be given."""

    modules: dict[str, str]
    data_json: str
    revision: str
    digest: str

    def unpacked(self) -> Bundle:
        """Return the bundle."""
        return Bundle(
            modules=self.modules,
            data_json=self.data_json,
            revision=self.revision,
            digest=self.digest,
        )


def packed(bundle: Bundle) -> PackedBundle:
    """Return a bundle in a form that another process can be given.

    Args:
        bundle: the policy.
    """
    return PackedBundle(dict(bundle.modules), bundle.data_json, bundle.revision, bundle.digest)


def spread(
    lines: Iterable[JsonObject],
    make: Callable[..., Work[_Found]],
    terms: tuple[Any, ...],
    jobs: int = 0,
) -> Iterator[_Found]:
    """Yield what is found for each line, in the lines' order.

    Args:
        lines: of files of records.
        make: makes what is done with each line, once a process; a function of a module.
        terms: what it is given.
        jobs: processes; as many as there are processors where 0. A few lines have one alone.
    """
    remaining = iter(lines)
    first = list(islice(remaining, _CHUNK))
    jobs = jobs or os.cpu_count() or 1
    if len(first) < _CHUNK or jobs == 1:
        work = make(*terms)
        yield from map(work, first)
        yield from map(work, remaining)
        return
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, mp_context=spawned, initializer=_begin, initargs=(make, terms)
    ) as processes:
        for done in processes.map(_chunk_done, _chunks(first, remaining)):
            yield from done


def _chunks(first: list[JsonObject], remaining: Iterator[JsonObject]) -> Iterator[list[JsonObject]]:
    chunk = first
    while chunk:
        yield chunk
        chunk = list(islice(remaining, _CHUNK))


_work: list[Work[Any]] = []  # that of a process of the pool


def _begin(make: Callable[..., Work[Any]], terms: tuple[Any, ...]) -> None:
    _work[:] = [make(*terms)]


def _chunk_done(lines: list[JsonObject]) -> list[Any]:
    return [_work[0](line) for line in lines]
