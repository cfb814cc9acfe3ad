"""The alphabet of a tool's id, namespace, name and aliases.

They are put before models, people and policies, and compared letter by letter: a second line could
hold orders to a model, and a Cyrillic letter passes for a Latin one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.errors import ConfigurationError

MAX_CHARS: Final = 256
ALPHABET: Final = "ASCII letters and digits and _-./:@#$+~<>"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_\-./:@#$+~<>]")
_SHOWN_CHARS: Final = 80


def check_identity(tool_id: str, namespace: str, name: str, aliases: Iterable[str] = ()) -> None:
    """Refuse a tool that is called by anything but words of the alphabet.

    Args:
        tool_id: its id.
        namespace: its namespace.
        name: its name.
        aliases: its aliases.

    Raises:
        ConfigurationError: one of them is no text, is empty or too long, or has another character.
    """
    _check("tool_id", tool_id)
    _check("namespace", namespace)
    _check("name", name)
    for alias in aliases:
        _check("alias", alias)


def _check(part: str, text: object) -> None:
    if not isinstance(text, str):
        kind = type(text).__name__
        raise ConfigurationError(f"the {part} of a tool is a text, not {kind}")
    if 1 <= len(text) <= MAX_CHARS and not _OTHER.search(text):
        return
    # escaped: what is refused here must not reach a terminal as it is
    shown = ascii(text[:_SHOWN_CHARS])
    raise ConfigurationError(
        f"the {part} of a tool is 1 to {MAX_CHARS} characters of {ALPHABET}, not {shown}"
    )


def spelt(text: str) -> str:
    """Return a text with ``_`` for each character outside the alphabet, as ``my_tool`` for a
    program ``my tool.py``.
    """
    return _OTHER.sub("_", text)[:MAX_CHARS]
