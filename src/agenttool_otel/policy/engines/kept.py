"""What checking and compiling a bundle leaves behind, kept for the next process beside Python's own
bytecode.

It takes 0.4 s of CPU time and gives the same each time. The file lies in ``__pycache__``, where the
compiled form of this package's own code lies: who may write there may change that code anyway,
so it is trusted as that is, and written under the same conditions (``PYTHONDONTWRITEBYTECODE``,
``PYTHONPYCACHEPREFIX``). Its name is a digest of everything that it was made from: the bundle, the
entry points, the engine, this package's policy code, Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final

from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path, digest_of
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.engines.shipped import bundle_content, policy_files
from agenttool_otel.policy.rego.native import regorus_module
from agenttool_otel.values.files import replace_file

_FILES: Final = 8
_OTHERS_MAY_WRITE: Final = 0o022


def recall(bundle: Bundle, entry_points: Sequence[str]) -> Any:
    """Return what was kept of a bundle, or ``None``."""
    try:
        path = _place(bundle, entry_points)
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_mode & _OTHERS_MAY_WRITE or state.st_uid not in (
                os.geteuid(),
                Path(__file__).stat().st_uid,
            ):
                return None
            content = file.read()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        _note_use(path)
        return pickle.loads(content[32:])  # noqa: S301 - as trusted as the bytecode that lies beside it
    except (OSError, AttributeError, NotImplementedError, ValueError):
        return None


def _note_use(path: Path) -> None:
    """Let the files that were not used for longest go first."""
    with contextlib.suppress(OSError):  # another user's
        os.utime(path)


def keep(bundle: Bundle, entry_points: Sequence[str], kept: Any) -> None:
    """Keep what a bundle was compiled to, if Python may write bytecode; others may read that of the
    stock bundle.
    """
    if sys.dont_write_bytecode:
        return
    with contextlib.suppress(OSError, AttributeError, NotImplementedError, ValueError):
        path = _place(bundle, entry_points)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = pickle.dumps(kept)
        is_stock = bundle.digest == load_bundle(default_bundle_path()).digest
        replace_file(
            path, hashlib.sha256(content).digest() + content, mode=0o644 if is_stock else 0o600
        )
        for old in sorted(path.parent.glob("bundle-*.bin"), key=lambda item: -item.stat().st_mtime)[
            _FILES:
        ]:
            old.unlink()


def _place(bundle: Bundle, entry_points: Sequence[str]) -> Path:
    sources = [Path(regorus_module().regorus.__file__), *policy_files()]
    stated = [
        f"{path} {found.st_size} {found.st_mtime_ns}" for path in sources if (found := path.stat())
    ]
    digest = digest_of((sys.version, *stated, *entry_points, "", bundle_content(bundle)))
    return Path(cache_from_source(__file__)).with_name(f"bundle-{digest}.bin")
