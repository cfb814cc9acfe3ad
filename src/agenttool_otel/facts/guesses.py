"""What a value is by its look, where neither the declaration nor the argument's name determines it.

A tool that reads files gets ``{"target": "/etc/shadow"}`` as easily as ``{"path": "/etc/shadow"}``.
For tools that are declared to use files or the network, the remaining texts are looked at when they
are called. It is a net below the declaration and no replacement for it: a bare word is taken for a
file only where a file of that name exists, or the name is known to hold secrets.
"""

from __future__ import annotations

import os
import re
from typing import Final

from agenttool_otel.facts.argument_names import FactKind
from agenttool_otel.facts.types import FactEnvironment

_MAX_CHARS: Final = 8192
"""Longer texts are no names of anything."""

_MAX_NAME: Final = 255
_URL: Final = re.compile(
    r"\s*(?:[a-z][a-z0-9+.\-]*:[/\\]{2}|(?:https?|wss?|ftps?|file):)", re.IGNORECASE | re.ASCII
)
_NO_SCHEME: Final = re.compile(r"\s*[/\\]{2}[^\s/\\]")
_PATH_START: Final = re.compile(
    r"\s*(?:[/\\~]|\.\.?(?:[/\\]|\s*$)|[a-z]:[/\\])", re.IGNORECASE | re.ASCII
)
_PATH_WITHIN: Final = re.compile(
    r"\.[^\s.]\S*|\S*(?:[/\\]|%2[ef]|%5c|\$\{?home\b)\S*|(?:[^/\\\n]*[/\\])*\.\.(?:[/\\].*)?",
    re.IGNORECASE,
)
_QUAD: Final = re.compile(r"\s*(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:/\S*)?\s*", re.ASCII)
_V6: Final = re.compile(
    r"\s*\[?[0-9a-f]{0,4}(?::[0-9a-f.]{0,15}){2,8}(?:%\w+)?\]?(?::\d{1,5})?(?:/\S*)?\s*",
    re.I | re.A,
)
_HOST: Final = re.compile(
    r"\s*[a-z0-9_](?:[a-z0-9_\-]*[a-z0-9_])?(?:\.[a-z0-9_\-]+)*\.?(?::\d{1,5})?(?:/\S*)?\s*",
    re.I | re.A,
)


def kind_of_value(
    text: str,
    *,
    files: bool,
    network: bool,
    env: FactEnvironment,
) -> tuple[FactKind, str] | None:
    """Return what a text is by its look, and the text to establish the fact of; ``None`` for most
    texts.

    A bare address or local host name becomes a URL, because that is what a client would make of it.

    Args:
        text: the text.
        files: whether the tool uses files.
        network: whether the tool connects to hosts that its arguments name.
        env: the call's surroundings; a bare word may be a file there.
    """
    if not text or len(text) > _MAX_CHARS:
        return None
    if _URL.match(text):
        return (FactKind.URL, text) if _is_single_line(text) else None
    if network and not files and _NO_SCHEME.match(text) and _is_single_line(text):
        return FactKind.URL, text
    if network and _is_inner_host(text):
        return FactKind.URL, _as_url(text)
    if files and _is_path(text, env):
        return FactKind.PATH, text
    return None


def starts_like_path(text: str) -> bool:
    """Return whether a text names a place in a file system: from its root, from home or upwards."""
    return bool(_PATH_START.match(text))


def _is_single_line(text: str) -> bool:
    return "\n" not in text.strip()


def _is_path(text: str, env: FactEnvironment) -> bool:
    lines = text.strip().splitlines()
    if not lines:
        return False
    # a list of paths, each on a line; not a program or a letter that begins with a slash
    if all(_PATH_START.match(line) for line in lines):
        return True
    if len(lines) > 1:
        return False
    if _PATH_WITHIN.fullmatch(text.strip()):
        return True
    if len(text) > _MAX_NAME:
        return False
    return _is_sensitive(text) or _exists(text, env)


def _is_sensitive(name: str) -> bool:
    from agenttool_otel.readers.paths.sensitive import sensitive_class

    return sensitive_class("/" + name, None) is not None


def _exists(name: str, env: FactEnvironment) -> bool:
    if not env.read_file_system:
        return True  # it may be; the fact will be uncertain
    path = os.path.join(env.cwd, name) if env.cwd else name
    try:
        return os.path.lexists(path)
    except (OSError, ValueError):
        return True


def _is_inner_host(text: str) -> bool:
    if _QUAD.fullmatch(text) or (text.count(":") > 1 and _V6.fullmatch(text)):
        return True
    if _HOST.fullmatch(text) is None:
        return False
    from agenttool_otel.names import AddressClass
    from agenttool_otel.readers.urls.hostnames import name_class

    host = text.strip().lower().partition("/")[0].partition(":")[0].rstrip(".")
    if "." not in host and host not in {"localhost", "metadata"}:
        return False  # a word, and not the name of a machine
    return name_class(host) not in (AddressClass.NAME, AddressClass.PUBLIC)


def _as_url(text: str) -> str:
    bare = text.strip()
    if bare.count(":") > 1 and not bare.startswith("["):
        address, slash, rest = bare.partition("/")
        bare = f"[{address}]{slash}{rest}"
    return f"http://{bare}"
