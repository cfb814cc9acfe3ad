"""The compiled form of the stock bundle and of each of its presets, as a wheel brings it.

An installation that nobody may write to has no place to keep what a first process compiled
(``kept.py``), so each process would compile anew. The file is made when a wheel is built, and is as
trusted as the code beside it. It begins with a line of JSON that names what it was made from: the
engine's version, this package's, a digest of this package's policy code, the entry points, and a
digest of each bundle. Where one of them differs, it is as if it were not there.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import orjson

from agenttool_otel.policy.bundles.bundle import Bundle, digest_of

PLACE: Final = Path(__file__).parents[2] / "_compiled" / "stock.bin"
"""Where a wheel has it; a checkout has none."""

_DISTRIBUTIONS: Final = ("gordon-to-regorus", "agenttool-otel")


def recall_shipped(bundle: Bundle, entry_points: Sequence[str]) -> Any:
    """Return what the wheel's build made of a bundle, or ``None``."""
    try:
        with PLACE.open("rb") as file:
            made_from = orjson.loads(file.readline())
            if bundle_content(bundle) not in made_from["bundles"]:
                return None
            content = file.read()
        if made_from != _made_from(made_from["bundles"], entry_points, content):
            return None
        return pickle.loads(content)  # noqa: S301 - as trusted as the code that lies beside it
    except (OSError, ValueError, KeyError, TypeError, AttributeError, PackageNotFoundError):
        return None


def shipped_form(bundles: Iterable[Bundle], entry_points: Sequence[str], made: Any) -> bytes:
    """Return the file's content.

    Args:
        bundles: those of which all the same was made.
        entry_points: full names of the rules that it was made for.
        made: what was made of them.
    """
    content = pickle.dumps(made)
    digests = sorted(map(bundle_content, bundles))
    return orjson.dumps(_made_from(digests, entry_points, content)) + b"\n" + content


def bundle_content(bundle: Bundle) -> str:
    """Return a digest of all of a bundle that is compiled."""
    modules = [text for item in sorted(bundle.modules.items()) for text in item]
    return digest_of((*bundle.roots, "", bundle.data_json, *modules))


def policy_files() -> list[Path]:
    """Return the files of this package's policy code."""
    found = Path(__file__).parents[1].rglob("*.*")
    return sorted(path for path in found if path.suffix in (".py", ".toml", ".json"))


def _made_from(
    bundles: Sequence[str], entry_points: Sequence[str], content: bytes
) -> dict[str, Any]:
    return {
        "versions": {name: version(name) for name in _DISTRIBUTIONS},
        "code": _code(),
        "entry_points": list(entry_points),
        "bundles": list(bundles),
        "content": hashlib.sha256(content).hexdigest(),
    }


@cache
def _code() -> str:
    state = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in policy_files():
        content = path.read_bytes()
        state.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        state.update(content)
    return state.hexdigest()
