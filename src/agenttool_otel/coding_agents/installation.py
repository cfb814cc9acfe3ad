"""The hooks of a coding agent in its settings: put in, taken out, and looked at."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final

from agenttool_otel.coding_agents.dialects import Dialect, Switch, dialect_of
from agenttool_otel.coding_agents.settings_text import (
    MARK,
    NEW_FILE,
    read_settings,
    with_hook,
    without_hooks,
)
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import HookPart

_BLOCKS: Final = "|| { echo 'blocked by agenttool' >&2; exit 2; }"
_GOES_ON: Final = "|| :"
_PLUGIN: Final = "data/opencode.js"


@dataclass(frozen=True)
class Installation:
    """The hooks of one agent in one settings file.

    Attributes:
        agent: the agent, of ``AGENTS``.
        path: the settings file.
        socket_path: the socket of the decision point.
        python: the Python that runs the client.
    """

    agent: str
    path: Path
    socket_path: Path
    python: str = sys.executable

    @property
    def dialect(self) -> Dialect:
        """The agent's dialect."""
        return dialect_of(self.agent)

    # --- commands ---------------------------------------------------------------------------------

    def words(self, event: str) -> list[str]:
        """Return the words by which the client is run for an event.

        Args:
            event: the event.
        """
        part = "decide" if self.dialect.events[event] is HookPart.DECIDE else "record"
        client = str(Path(__file__).with_name("client.py"))
        words = [self.python, "-I", "-S", client, part, self.agent, event, str(self.socket_path)]
        variable = self.dialect.settings.project_variable
        return [*words, variable] if variable else words

    def command(self, event: str, made: str) -> str:
        """Return the command of a hook, with its guard: a client that can't run blocks the call.

        Args:
            event: the event.
            made: what had to be made in the settings file for it.
        """
        guard = _BLOCKS if self.dialect.events[event] is HookPart.DECIDE else _GOES_ON
        return f"{shlex.join(self.words(event))} {guard} {MARK}{made}"

    def _group(self, event: str, made: str) -> dict[str, Any]:
        settings = self.dialect.settings
        hook: dict[str, Any] = {
            "type": "command",
            "command": self.command(event, made),
            "timeout": settings.timeout,
        }
        if settings.name:
            hook["name"] = settings.name
        matcher = {} if self.dialect.events[event] is HookPart.END else {"matcher": "*"}
        return {**matcher, "hooks": [hook]}

    # --- texts ------------------------------------------------------------------------------------

    def installed(self, text: str | None) -> str:
        """Return the settings with our hooks; those of an older installation are replaced.

        Args:
            text: the settings; ``None`` where there is no file.

        Raises:
            ConfigurationError: they can't be read, or are a plugin of somebody else's.
        """
        if self.dialect.settings.kind == "plugin":
            if text is not None and not self._is_our_plugin(text):
                raise ConfigurationError(f"{self.path} is not ours")
            return self._plugin()
        if text is not None and self.removed(text) != text:
            text = self.removed(text)
        made = "file" if text is None else ""
        text = NEW_FILE if text is None else text
        for event in self.dialect.events:
            text = with_hook(text, event, partial(self._group, event), made)
        return text

    def removed(self, text: str) -> str | None:
        """Return the settings without our hooks; ``None`` where the file is to go.

        Args:
            text: the settings.

        Raises:
            ConfigurationError: they can't be read, or are a plugin that was edited.
        """
        if self.dialect.settings.kind == "json":
            text, is_gone = without_hooks(text, is_ours)
            return None if is_gone else text
        if not self._is_our_plugin(text):
            raise ConfigurationError(f"{self.path} is not ours, or was edited")
        return None

    def _plugin(self) -> str:
        template = resources.files(__package__).joinpath(_PLUGIN).read_text("utf-8")
        by_part = {"decide": "", "record": ""}
        commands = {}
        for event, part in self.dialect.events.items():
            commands["decide" if part is HookPart.DECIDE else "record"] = self.words(event)
        text = template.replace('"@COMMAND@"', json.dumps({**by_part, **commands}))
        return text.replace('"@SECONDS@"', str(self.dialect.settings.timeout))

    def _is_our_plugin(self, text: str) -> bool:
        # of another Python or socket: only the line with the command differs
        ours, found = self._plugin().splitlines(), text.splitlines()
        differing = [i for i, line in enumerate(ours) if found[i : i + 1] != [line]]
        return len(ours) == len(found) and all("const COMMAND" in ours[i] for i in differing)

    # --- the file ---------------------------------------------------------------------------------

    def read(self) -> str | None:
        """Return the settings; ``None`` where there is no file.

        Raises:
            ConfigurationError: the file can't be read.
        """
        try:
            return self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{self.path} can't be read: {type(error).__name__}") from None

    def write(self, text: str | None) -> None:
        """Replace the settings at once, or remove the file.

        Args:
            text: the settings; ``None`` for no file.

        Raises:
            ConfigurationError: the file can't be written.
        """
        try:
            if text is None:
                self.path.unlink(missing_ok=True)
            else:
                _replace(Path(os.path.realpath(self.path)), text.encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self.path} can't be written: {error.strerror}") from None

    def diff(self, before: str | None, after: str | None) -> str:
        """Return what would change, as a unified diff.

        Args:
            before: the settings as they are.
            after: as they would be.
        """
        old, new = ((text or "").splitlines(keepends=True) for text in (before, after))
        names = [str(self.path) if text is not None else "/dev/null" for text in (before, after)]
        return "".join(difflib.unified_diff(old, new, names[0], names[1]))

    # --- how it is --------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Return what keeps the hooks from being called; empty where they are in place.

        Raises:
            ConfigurationError: the settings can't be read.
        """
        text = self.read()
        if text is None:
            return ["not installed"]
        if self.dialect.settings.kind == "plugin":
            return [] if text == self._plugin() else ["not installed, or another version of it"]
        settings = read_settings(text)
        found = [switched for off in self.dialect.settings.off if (switched := _off(settings, off))]
        for event in self.dialect.events:
            groups = [each for each in settings.get("hooks", {}).get(event, ()) if is_ours(each)]
            if not groups:
                found.append(f"no hook for {event}")
            elif not any(self._is_fresh(event, group) for group in groups):
                found.append(f"another version of the hook for {event}: install it again")
        return found

    def _is_fresh(self, event: str, group: Mapping[str, Any]) -> bool:
        made = group["hooks"][0]["command"].partition(MARK)[2]
        return group == self._group(event, made)


def is_ours(group: Any) -> bool:
    """Return whether an entry of an event's list is a hook of ours.

    Args:
        group: the entry.
    """
    hooks = group.get("hooks") if isinstance(group, Mapping) else None
    if not isinstance(hooks, list) or len(hooks) != 1 or not isinstance(hooks[0], Mapping):
        return False
    return MARK in str(hooks[0].get("command", ""))


def settings_path(agent: str, project: Path | None) -> Path:
    """Return the settings file of an agent.

    Args:
        agent: the agent, of ``AGENTS``.
        project: the project's folder; ``None`` for this user's settings.

    Raises:
        ConfigurationError: there is no such agent.
    """
    settings = dialect_of(agent).settings
    if project is not None:
        return project / settings.project
    folder = os.environ.get(settings.home_variable) if settings.home_variable else None
    if folder:
        return Path(folder) / Path(settings.user).name
    return Path(settings.user).expanduser()


def _off(settings: Mapping[str, Any], switch: Switch) -> str:
    """Return how hooks are switched off; empty where they are not."""
    value: Any = settings
    for token in switch.pointer[1:].split("/"):
        value = value.get(token) if isinstance(value, Mapping) else None
    if switch.equals is not None and value is switch.equals:
        return f"switched off: {switch.pointer} is {json.dumps(value)}"
    if switch.holds is not None and isinstance(value, list) and switch.holds in value:
        return f"switched off: {switch.pointer} has {switch.holds}"
    return ""


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    made, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
