"""Bundles on top of one another in one engine: whichever changes, the engine gets the whole anew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from agenttool_otel.errors import PolicyError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.places import Opened
from agenttool_otel.values.forks import new_lock

_logger: Final = logging.getLogger("agenttool_otel.policy")

Parts = Mapping[str, Bundle]
"""Bundles by the part that they are: ``bundle``, ``extension``, ``data``."""


class Layers:
    """An engine for several bundles, of which each may be watched.

    Args:
        parts: what was opened, by name.
        join: makes one bundle of them.

    Raises:
        PolicyLoadError: they can't be used together.
    """

    def __init__(self, parts: Mapping[str, Opened], join: Callable[[Parts], Bundle]) -> None:
        self._parts = {name: opened.bundle for name, opened in parts.items()}
        self._join = join
        self._lock = new_lock()
        self.engine = EmbeddedEngine(join(self._parts))

    def follow(self, name: str, opened: Opened, *, binds: bool = True) -> None:
        """Let the engine follow one of the parts.

        Args:
            name: the part.
            opened: where it is.
            binds: whether a change that this engine can't use is refused for all that follow the place.
        """
        if opened.source is not None:
            opened.source.attach(_Layer(self, name, binds))

    def replace(self, name: str, bundle: Bundle) -> None:
        """Use another bundle as one of the parts."""
        # two places may change at once, each looked at by a thread of its own
        with self._lock:
            parts = {**self._parts, name: bundle}
            self.engine.swap(self._join(parts))
            self._parts = parts


class _Layer:
    """One part of layers, as what follows its source."""

    def __init__(self, layers: Layers, name: str, binds: bool) -> None:
        self._layers = layers
        self._name = name
        self._binds = binds

    def swap(self, bundle: Bundle) -> None:
        """Use a new bundle."""
        try:
            self._layers.replace(self._name, bundle)
        except PolicyError as error:
            if self._binds:
                raise
            _logger.error("the shadow policy keeps the %s of before: %s", self._name, error)
