"""When the files of a policy project change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle_files import directory_stamp

_PAUSE_SECONDS: Final = 0.3


def changes(folder: Path) -> Iterator[None]:
    """Yield at once, and after each change of a rule, a test or a data file; never ends by itself.

    Args:
        folder: the project's folder.
    """
    seen: tuple[object, ...] | None = None
    while True:
        now = _stamp(folder)
        if now is not None and now != seen:
            seen = now
            yield
        time.sleep(_PAUSE_SECONDS)


def _stamp(folder: Path) -> tuple[object, ...] | None:
    try:
        return directory_stamp(folder)
    except PolicyLoadError:  # an editor that replaces a file removes it for a moment
        return None
