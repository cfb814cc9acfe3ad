"""The ``regorus`` module: its objects, which only one thread may use, and its failures as
exceptions of this package.

Its panics derive from ``BaseException`` and so pass every ``except Exception``; its errors carry
source excerpts, quoted values and a native stack trace, none of which may reach a span. Both are
reduced here to file, line and cause.

A native object panics when another thread than its own uses it, and prints an unraisable error and
leaks when another thread drops it. Who drops an object last is not in our hands: an exception keeps
the frames that it passed, and with them whatever their variables hold, and may cross threads in a
future; a cycle is collected in any thread; ``fork`` and the end of the interpreter drop what the
other threads held. So the object itself stays in a table of its thread, and everything else holds
an ``Owned``, which any thread may drop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, TypeVar

from agenttool_otel.errors import ConfigurationError, PolicyError, PolicyLoadError
from agenttool_otel.names import FailClosedCause

_Error = TypeVar("_Error", bound=PolicyError)

UNDEFINED: Final = "<undefined>"
"""What an evaluation gives for a rule without a value."""

_PASS_THROUGH: Final = (
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    asyncio.CancelledError,
    MemoryError,
)
_PLACE: Final = re.compile(r"^-->\s*(.+?):(\d+):(\d+)\s*$", re.MULTILINE)
_CAUSE: Final = re.compile(r"^error:\s*(.+)$", re.MULTILINE)
_QUOTED: Final = re.compile(r"`[^`]*`|\"[^\"]*\"")


@cache
def regorus_module() -> Any:
    """Return the ``regorus`` module."""
    try:
        import regorus
    except ImportError as error:
        raise ConfigurationError(
            f"the embedded policy engine needs the package gordon-to-regorus ({error}); an OPA server does not:"
            " AGENTTOOL_POLICY_ENGINE=opa_server"
        ) from None
    _without_backtraces(regorus)
    return regorus


def _without_backtraces(regorus: Any) -> None:
    """Make the library decide for good that its errors carry no native stack trace, of which each
    takes 50 ms.

    It looks at these variables once, at its first error, so they can be put back after that.
    """
    names = ("RUST_BACKTRACE", "RUST_LIB_BACKTRACE")
    saved = {name: os.environ[name] for name in names if name in os.environ}
    if all(value == "0" for value in saved.values()):
        return
    os.environ["RUST_LIB_BACKTRACE"] = "0"
    try:
        with contextlib.suppress(Exception):
            regorus.Program.compile_from_modules("{}", [], [])
    finally:
        del os.environ["RUST_LIB_BACKTRACE"]
        os.environ.update(saved)


@cache
def regorus_version() -> str:
    """Return name and version of the installed distribution that offers ``regorus``, or
    ``unknown``.
    """
    from importlib import metadata

    for name in metadata.packages_distributions().get("regorus", []):
        return f"{name} {metadata.version(name)}"
    return "unknown"


_keys = itertools.count()
_tables: Final[dict[int, dict[int, Any]]] = {}
# never dropped: what threads still hold when the process ends, or in the child of a fork, goes with
# the process
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_tables))


class _Table:
    """The native objects of one thread; emptied when the thread ends."""

    __slots__ = ("__weakref__", "dropped", "natives", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.natives: dict[int, Any] = {}
        self.dropped: deque[int] = deque()
        _tables[id(self.natives)] = self.natives

    def sweep(self) -> None:
        """Drop what other threads let go of."""
        while self.dropped:
            self.natives.pop(self.dropped.popleft(), None)

    def __del__(
        self,
        thread: Callable[[], int] = threading.get_ident,
        tables: dict[int, dict[int, Any]] = _tables,
    ) -> None:
        if thread() == self.thread:
            tables.pop(id(self.natives), None)
            self.natives.clear()


class _Local(threading.local):
    def __init__(self) -> None:
        self.table = _Table()


_local = _Local()


class Owned:
    """Stands for a native object of the thread that made it.

    Every attribute is the object's own. An attribute is to be called at once and never kept in a
    variable: it would hold the object.
    """

    __slots__ = ("_dropped", "_key", "_table", "_thread")

    def __init__(self, make: Callable[[], Any]) -> None:
        table = _local.table
        table.sweep()
        self._key = next(_keys)
        self._thread = table.thread
        self._table = weakref.ref(table)
        self._dropped = table.dropped
        table.natives[self._key] = make()

    def __getattr__(self, name: str) -> Any:
        table = self._table() if threading.get_ident() == self._thread else None
        if table is None:
            raise RuntimeError("a native object is used in a thread that did not make it")
        return getattr(table.natives[self._key], name)

    def __del__(self, thread: Callable[[], int] = threading.get_ident) -> None:
        table = self._table() if thread() == self._thread else None
        if table is not None:
            table.natives.pop(self._key, None)
        else:
            self._dropped.append(self._key)


def new_engine() -> Any:
    """Return a fresh engine, usable in this thread only; any thread may drop it."""
    return Owned(regorus_module().Engine)


def loaded_engine(
    modules: Iterable[tuple[str, str]], data_json: str, *, what: str = "the bundle"
) -> Any:
    """Return a fresh engine with some modules, each with its file, and a data document."""
    engine = new_engine()
    try:
        for file, text in modules:
            engine.add_policy(file, text)
        engine.add_data_json(data_json)
    except BaseException as error:
        raise native_error(error, PolicyLoadError, f"{what} can't be loaded: ") from None
    return engine


def new_machine(binary: bytes) -> Any:
    """Return a fresh machine with a compiled program, usable in this thread only; any thread may
    drop it.
    """
    machine = Owned(regorus_module().Rvm)
    machine.load_program(_program(binary))
    return machine


def _program(binary: bytes) -> Any:
    loaded = regorus_module().Program.deserialize_binary(binary)
    return loaded[0] if isinstance(loaded, tuple) else loaded


def is_panic(error: BaseException) -> bool:
    """Return whether an exception is a panic of native code."""
    return not isinstance(error, Exception) and type(error).__name__ == "PanicException"


def native_error(error: BaseException, kind: type[_Error], prefix: str = "") -> _Error:
    """Turn whatever the engine raised into an exception of this package."""
    if isinstance(error, _PASS_THROUGH):
        raise error
    if is_panic(error):
        return kind(f"{prefix}the policy engine panicked", cause=FailClosedCause.ENGINE_PANIC)
    if not isinstance(error, Exception):
        raise error
    text = str(error).split("Stack backtrace:")[0]
    reason = _reason(text) or type(error).__name__
    if not issubclass(kind, PolicyLoadError):
        # quoted parts may be values that came from the input
        reason = _QUOTED.sub("...", reason)
    place = _PLACE.search(text)
    if place is not None:
        prefix = f"{place.group(1)}:{place.group(2)}: "
    return kind(f"{prefix}{reason[:200]}")


def _reason(text: str) -> str:
    """Return the cause that an error's text names, else its first line that is no place."""
    cause = _CAUSE.search(text)
    if cause is not None:
        return cause.group(1)
    for line in text.splitlines():
        # "--> rule.rego:3:5" is a place
        line = line.strip()
        if line and not line.startswith("-->"):
            return line
    return ""
