"""The ``regorus`` module, with its failures as exceptions of this package.

Its panics derive from ``BaseException`` and so pass every ``except Exception``; its errors carry source excerpts,
quoted values and a native stack trace, none of which may reach a span. Both are reduced here to file, line and cause.
"""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import Any, Final, TypeVar

from agenttool_otel.errors import ConfigurationError, PolicyError, PolicyLoadError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.owned import Owned

__all__ = ["native_error", "new_engine", "new_machine", "regorus_module", "regorus_version"]

_Error = TypeVar("_Error", bound=PolicyError)

_PASS_THROUGH: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, MemoryError)
_PLACE: Final = re.compile(r"^-->\s*(.+?):(\d+):(\d+)\s*$", re.MULTILINE)
_CAUSE: Final = re.compile(r"^error:\s*(.+)$", re.MULTILINE)
_QUOTED: Final = re.compile(r"`[^`]*`|\"[^\"]*\"")


@cache
def regorus_module() -> Any:
    """Return the ``regorus`` module.

    Raises:
        ConfigurationError: no wheel that offers it is installed.
    """
    try:
        import regorus
    except ImportError as error:
        raise ConfigurationError(f"the embedded policy engine needs the package gordon-to-regorus: {error}") from None
    return regorus


@cache
def regorus_version() -> str:
    """Return name and version of the installed distribution that offers ``regorus``, or ``unknown``."""
    from importlib import metadata

    for name in metadata.packages_distributions().get("regorus", []):
        return f"{name} {metadata.version(name)}"
    return "unknown"


def new_engine() -> Any:
    """Return a fresh engine, usable in this thread only; any thread may drop it."""
    return Owned(regorus_module().Engine)


def new_machine(binary: bytes) -> Any:
    """Return a fresh machine with a compiled program, usable in this thread only; any thread may drop it.

    Args:
        binary: the program in its serialised form.
    """
    machine = Owned(regorus_module().Rvm)
    machine.load_program(_program(binary))
    return machine


def _program(binary: bytes) -> Any:
    loaded = regorus_module().Program.deserialize_binary(binary)
    return loaded[0] if isinstance(loaded, tuple) else loaded


def is_panic(error: BaseException) -> bool:
    """Tell whether an exception is a panic of native code."""
    return not isinstance(error, Exception) and type(error).__name__ == "PanicException"


def native_error(error: BaseException, kind: type[_Error], prefix: str = "") -> _Error:
    """Turn whatever the engine raised into an exception of this package.

    Args:
        error: the exception; one that means "stop" (KeyboardInterrupt and the like) is raised again.
        kind: the exception to make.
        prefix: text before the message, used when the engine named no place.

    Returns:
        the new exception, to be raised ``from None``.
    """
    if isinstance(error, _PASS_THROUGH):
        raise error
    if is_panic(error):
        return kind(f"{prefix}the policy engine panicked", cause=FailClosedCause.ENGINE_PANIC)
    if not isinstance(error, Exception):
        raise error
    text = str(error).split("Stack backtrace:")[0]
    place, cause = _PLACE.search(text), _CAUSE.search(text)
    if cause is not None:
        reason = cause.group(1)
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-->")]
        reason = lines[0] if lines else type(error).__name__
    if not issubclass(kind, PolicyLoadError):
        # quoted parts may be values that came from the input
        reason = _QUOTED.sub("...", reason)
    reason = reason[:200]
    where = f"{place.group(1)}:{place.group(2)}: " if place is not None else prefix
    return kind(f"{where}{reason}")
