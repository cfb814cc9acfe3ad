"""Objects of one thread: who may use them, and who drops them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import pytest

from agenttool_otel.policy.rego.native import Owned


class Native(dict[str, int]):
    """Stands in for a native object, with methods that have no frame; remembers the threads that
    dropped one.
    """

    def __init__(self, dropped_in: list[int] | None = None) -> None:
        super().__init__()
        self.dropped_in = dropped_in if dropped_in is not None else []
        self.number = 7

    def __del__(self) -> None:
        self.dropped_in.append(threading.get_ident())


def in_thread(work: Callable[[], object]) -> int:
    idents: list[int] = []
    thread = threading.Thread(target=lambda: (idents.append(threading.get_ident()), work()))
    thread.start()
    thread.join()
    return idents[0]


def test_it_stands_for_the_object_and_drops_it_at_once() -> None:
    dropped: list[int] = []
    subject = Owned(lambda: Native(dropped))
    assert subject.number == 7
    with pytest.raises(AttributeError):
        _ = subject.missing
    del subject
    assert dropped == [threading.get_ident()]


def test_what_another_thread_drops_goes_with_its_threads_next() -> None:
    dropped: list[int] = []
    holder = [Owned(lambda: Native(dropped))]
    in_thread(holder.clear)
    assert dropped == []
    Owned(Native)
    assert dropped == [threading.get_ident()]


def test_a_thread_that_ends_drops_what_others_still_hold() -> None:
    dropped: list[int] = []
    holder: list[Owned] = []
    ident = in_thread(lambda: holder.append(Owned(lambda: Native(dropped))))
    assert dropped == [ident]
    with pytest.raises(RuntimeError, match="did not make it"):
        _ = holder[0].number
    holder.clear()
    assert dropped == [ident]


def test_an_exception_that_passed_does_not_hold_it() -> None:
    reference: list[weakref.ref[Native]] = []

    def make() -> Native:
        native = Native()
        reference.append(weakref.ref(native))
        return native

    def work() -> Exception:
        try:
            Owned(make).popitem()
        except KeyError as error:
            return error
        raise AssertionError

    failures: list[Exception] = []
    in_thread(lambda: failures.append(work()))
    assert failures[0].__traceback__ is not None
    assert reference[0]() is None


def test_a_constructor_that_fails_leaves_nothing() -> None:
    def broken() -> Native:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Owned(broken)
    Owned(Native)
