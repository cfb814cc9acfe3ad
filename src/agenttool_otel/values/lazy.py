"""Names of a package whose modules are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(
    package: str,
    homes: Mapping[str, str],
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562).

    Args:
        package: the package's ``__name__``.
        homes: the names that it offers, each with the module below it that defines it.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = f"{package}.{homes[name]}"
        module = import_module(home)
        return getattr(module, name)

    return __getattr__
