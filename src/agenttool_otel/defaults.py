"""The default Governor: the one thing that is global, and built only when first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from agenttool_otel.errors import ConfigurationError

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["build_with", "default_governor", "is_default", "replace_default"]

_lock = threading.Lock()
_current: Governor | None = None
_build: Callable[[], Governor] | None = None


def build_with(build: Callable[[], Governor]) -> None:
    """Say how the default Governor is built; the governor module does, so that nothing below has to know it.

    Args:
        build: makes a Governor from the environment.
    """
    global _build
    _build = build


def default_governor() -> Governor:
    """Return the default Governor, built at first use from the environment.

    A policy that can't be loaded does not make tools run unguarded, nor does it break the program at import: the
    Governor refuses every call, with a span that says why, until ``configure`` is given a policy that works.
    """
    global _current
    if _current is None:
        with _lock:
            if _current is None:
                if _build is None:
                    raise ConfigurationError("the package is not imported as a whole")
                _current = _build()
    return _current


def replace_default(governor: Governor | None) -> Governor | None:
    """Put another Governor in charge and return the one that was; ``None`` means to build anew at next use.

    Args:
        governor: the new one.
    """
    global _current
    with _lock:
        old, _current = _current, governor
    return old


def is_default(governor: Governor) -> bool:
    """Tell whether a Governor is the default one now.

    Args:
        governor: the Governor.
    """
    return governor is _current
