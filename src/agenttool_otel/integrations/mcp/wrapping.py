"""Configurations of MCP clients, in which each server is run behind the proxy: ``agenttool mcp wrap``.

The form is that of ``claude_desktop_config.json``, ``.mcp.json`` and ``.cursor/mcp.json``:
``{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}``. What is not understood
is refused, as a server that is left out would be called without a decision. The file as it was is
kept beside it, so that it comes back byte for byte.
"""

from __future__ import annotations

import difflib
import json
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.conversion import loads_unique
from agenttool_otel.values.files import replace_file

PROGRAM: Final = (sys.executable, "-I", "-m", "agenttool_otel.cli")
"""The program that runs the proxy, with its first arguments."""
_SERVERS: Final = "mcpServers"
_PROXY: Final = ("mcp", "proxy")
_PROFILE: Final = "--profile="
_KEPT: Final = ".before-agenttool"
_HTTP: Final = frozenset({"http", "streamable-http", "streamableHttp"})
# of the client alone: who may call without the client's own question, how long it waits
_OF_CLIENT: Final = frozenset(
    {"alwaysAllow", "autoApprove", "cwd", "description", "disabled", "env", "timeout", "type"}
)
_OF_PROXY: Final = ("AGENTTOOL_", "OTEL_")
_INDENT: Final = re.compile(r"\{\r?\n([ \t]+)\"")


def wrapped(text: str, program: Sequence[str] = PROGRAM, profile: str = "") -> str:
    """Return a configuration in which each server is run behind the proxy.

    Args:
        text: The configuration.
        program: The program that runs the proxy, with its first arguments.
        profile: The profile that each server's process runs under; empty for none.

    Raises:
        ConfigurationError: It has a form that is not understood.
    """
    config = _read(text)
    for name, entry in config[_SERVERS].items():
        config[_SERVERS][name] = _behind(name, entry, program, profile)
    indent = _INDENT.match(text)
    shown = json.dumps(config, indent=indent[1] if indent else 2, ensure_ascii=False)
    return shown + ("\n" if text.endswith("\n") else "")


def _read(text: str) -> Any:
    try:
        config = loads_unique(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the configuration can't be read as JSON: {error}") from None
    servers = config.get(_SERVERS) if isinstance(config, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise ConfigurationError(f"the configuration has no {_SERVERS}")
    return config


def _behind(name: str, entry: Any, program: Sequence[str], profile: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigurationError(f"the server {name!r} is no object")
    if "command" in entry:
        server = ["--", *_command(name, entry)]
    elif "url" in entry and profile:
        raise ConfigurationError(f"the server {name!r} has a url: no profile holds it")
    elif "url" in entry:
        server = ["--http", _url(name, entry)]
    else:
        raise ConfigurationError(f"the server {name!r} has no command and no url")
    _check_members(name, entry)
    kept = {key: value for key, value in entry.items() if key not in {"command", "args", "url"}}
    if "type" in kept:
        kept["type"] = "stdio"
    command, *arguments = program
    options = [f"--server={name}", *([f"{_PROFILE}{profile}"] if profile else [])]
    return {
        "command": command,
        "args": [*arguments, *_PROXY, *options, *server],
        **kept,
    }


def _command(name: str, entry: Mapping[str, Any]) -> list[str]:
    command, arguments = entry["command"], entry.get("args", [])
    if entry.get("type", "stdio") != "stdio" or "url" in entry:
        raise ConfigurationError(f"the server {name!r} has a command, and is of another type")
    if not isinstance(arguments, list):
        raise ConfigurationError(f"the arguments of the server {name!r} are no list")
    words = [command, *arguments]
    if not all(isinstance(word, str) for word in words) or not command:
        raise ConfigurationError(f"the command of the server {name!r} has a word that is no text")
    if tuple(word for word in arguments if word in _PROXY)[:2] == _PROXY:
        raise ConfigurationError(f"the server {name!r} is behind a proxy already")
    return words


def _url(name: str, entry: Mapping[str, Any]) -> str:
    url = entry["url"]
    if entry.get("type", "http") not in _HTTP:
        raise ConfigurationError(f"the server {name!r} is of a type that the proxy does not reach")
    if not isinstance(url, str) or urlsplit(url).scheme not in {"http", "https"}:
        raise ConfigurationError(f"the url of the server {name!r} is none of HTTP")
    return url


def _check_members(name: str, entry: Mapping[str, Any]) -> None:
    unknown = sorted(entry.keys() - _OF_CLIENT - {"command", "args", "url"})
    if unknown:
        # "headers" with a token, which the proxy would not hand on
        raise ConfigurationError(f"the server {name!r} has {', '.join(unknown)}: not understood")
    environment = entry.get("env", {})
    if not isinstance(environment, dict):
        raise ConfigurationError(f"the env of the server {name!r} is no object")
    for variable in environment:
        if variable.startswith(_OF_PROXY):
            # it would be the proxy's, and not reach the server
            raise ConfigurationError(f"the server {name!r} sets {variable}, which is the proxy's")


# --- the file -------------------------------------------------------------------------------------


class ClientConfig:
    """A configuration file of a client, and beside it the file as it was before.

    Args:
        path: The file.
    """

    def __init__(self, path: str | Path) -> None:
        # a link stays a link
        self.path = Path(path).resolve()
        self.kept = self.path.with_name(self.path.name + _KEPT)

    def wrap(
        self, program: Sequence[str] = PROGRAM, *, profile: str = "", write: bool = True
    ) -> str:
        """Run each server behind the proxy; return the difference.

        Args:
            program: The program that runs the proxy, with its first arguments.
            profile: The profile that each server's process runs under; empty for none.
            write: Whether the file is changed.

        Raises:
            ConfigurationError: It is wrapped already, can't be read or written, or is not understood.
        """
        before = _bytes(self.path)
        # equal where wrapping ended between its two writes
        if self.kept.exists() and _bytes(self.kept) != before:
            raise ConfigurationError(f"{self.path} is wrapped already: --undo comes first")
        after = wrapped(_text(before), program, profile).encode()
        if write:
            _write(self.kept, before, like=self.path)
            _write(self.path, after, like=self.path)
        return self._diff(before, after)

    def undo(self, *, write: bool = True) -> str:
        """Put the file back as it was; return the difference.

        Args:
            write: Whether the file is changed.

        Raises:
            ConfigurationError: It is not wrapped, or was changed since.
        """
        if not self.kept.exists():
            raise ConfigurationError(f"{self.path} is not wrapped: there is no {self.kept.name}")
        before, after = _bytes(self.path), _bytes(self.kept)
        if before != after and not _is_wrapped(_text(before), _text(after)):
            raise ConfigurationError(
                f"{self.path} was changed since it was wrapped; as it was, it is {self.kept}"
            )
        if write:
            _write(self.path, after, like=self.path)
            self.kept.unlink()
        return self._diff(before, after)

    def _diff(self, before: bytes, after: bytes) -> str:
        name = str(self.path)
        old, new = (_text(data).splitlines(keepends=True) for data in (before, after))
        return "".join(difflib.unified_diff(old, new, name, name))


def _is_wrapped(text: str, original: str) -> bool:
    """Return whether a text is what wrapping makes of another, by whatever program."""
    entry = next(iter(_read(text)[_SERVERS].values()), None)
    words = [entry.get("command"), *entry.get("args", [])] if isinstance(entry, dict) else []
    places = [at for at in range(len(words)) if tuple(words[at : at + 2]) == _PROXY]
    if not places:
        return False
    return text == wrapped(original, words[: places[0]], _profile_of(words[places[0] :]))


def _profile_of(words: Sequence[str]) -> str:
    """Return the profile of a wrapped server's command; empty for none."""
    for word in words:
        if word in {"--", "--http"}:
            break
        if word.startswith(_PROFILE):
            return word.removeprefix(_PROFILE)
    return ""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from None


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigurationError("the configuration is no UTF-8") from None


def _write(path: Path, data: bytes, *, like: Path) -> None:
    """Write a file at once, with the permissions of another: it may hold keys of servers."""
    try:
        replace_file(path, data, mode=stat.S_IMODE(like.stat().st_mode))
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror}") from None
