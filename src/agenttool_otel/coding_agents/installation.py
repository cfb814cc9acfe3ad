"""The hooks of a coding agent in its settings: put in, taken out, and looked at."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping
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
        words = [
            *(self.python, "-I", "-S"),
            str(Path(__file__).with_name("client.py")),
            "decide" if self.dialect.waits_at(event) else "record",
            self.agent,
            event,
            str(self.socket_path),
        ]
        variable = self.dialect.settings.project_variable
        if variable:
            words.append(variable)
        return words

    def command(self, event: str, made: str) -> str:
        """Return the command of a hook, with its guard: a client that can't run blocks the call.

        Args:
            event: the event.
            made: what had to be made in the settings file for it.
        """
        guard = _BLOCKS if self.dialect.waits_at(event) else _GOES_ON
        client = shlex.join(self.words(event))
        return f"{client} {guard} {MARK}{made}"

    def _group(self, event: str, made: str) -> dict[str, Any]:
        settings = self.dialect.settings
        hook: dict[str, Any] = {
            "type": "command",
            "command": self.command(event, made),
            "timeout": settings.timeout,
        }
        if settings.name:
            hook["name"] = settings.name
        # the end of a session is of no tool
        if self.dialect.events[event] is HookPart.END:
            return {"hooks": [hook]}
        return {"matcher": "*", "hooks": [hook]}

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
        folder = resources.files(__package__)
        template = folder.joinpath(_PLUGIN).read_text("utf-8")
        commands = {}
        for event in self.dialect.events:
            part = "decide" if self.dialect.waits_at(event) else "record"
            commands[part] = self.words(event)
        seconds = str(self.dialect.settings.timeout)
        text = template.replace('"@COMMAND@"', json.dumps(commands))
        return text.replace('"@SECONDS@"', seconds)

    def _is_our_plugin(self, text: str) -> bool:
        # of another Python or socket: only the line with the command differs
        ours = self._plugin().splitlines()
        found = text.splitlines()
        if len(ours) != len(found):
            return False
        for expected, line in zip(ours, found, strict=True):
            if line != expected and "const COMMAND" not in expected:
                return False
        return True

    # --- the file ---------------------------------------------------------------------------------

    def read(self) -> str | None:
        """Return the settings; ``None`` where there is no file.

        Raises:
            ConfigurationError: the file can't be read.
        """
        try:
            data = self.path.read_bytes()
            return data.decode("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            reason = type(error).__name__
            raise ConfigurationError(f"{self.path} can't be read: {reason}") from None

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
                # a link stays one
                path = Path(os.path.realpath(self.path))
                _replace(path, text.encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self.path} can't be written: {error.strerror}") from None

    def diff(self, before: str | None, after: str | None) -> str:
        """Return what would change, as a unified diff.

        Args:
            before: the settings as they are.
            after: as they would be.
        """
        lines = difflib.unified_diff(
            _lines(before),
            _lines(after),
            "/dev/null" if before is None else str(self.path),
            "/dev/null" if after is None else str(self.path),
        )
        return "".join(lines)

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
            if text == self._plugin():
                return []
            return ["not installed, or another version of it"]
        settings = read_settings(text)
        found = [_off(settings, switch) for switch in self.dialect.settings.off]
        hooks = settings.get("hooks", {})
        for event in self.dialect.events:
            found.append(self._problem_of(event, hooks.get(event, ())))
        return [problem for problem in found if problem]

    def _problem_of(self, event: str, groups: Iterable[Any]) -> str:
        """Return what is wrong with the hook of an event; empty where nothing is."""
        own = [group for group in groups if is_ours(group)]
        if not own:
            return f"no hook for {event}"
        if any(self._is_fresh(event, group) for group in own):
            return ""
        return f"another version of the hook for {event}: install it again"

    def _is_fresh(self, event: str, group: Mapping[str, Any]) -> bool:
        command = group["hooks"][0]["command"]
        made = command.partition(MARK)[2]
        return group == self._group(event, made)


def is_ours(group: Any) -> bool:
    """Return whether an entry of an event's list is a hook of ours.

    Args:
        group: the entry.
    """
    if not isinstance(group, Mapping):
        return False
    hooks = group.get("hooks")
    if not isinstance(hooks, list) or len(hooks) != 1:
        return False
    hook = hooks[0]
    return isinstance(hook, Mapping) and MARK in str(hook.get("command", ""))


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
    user = Path(settings.user)
    folder = os.environ.get(settings.home_variable, "") if settings.home_variable else ""
    if folder:
        return Path(folder) / user.name
    return user.expanduser()


def _off(settings: Mapping[str, Any], switch: Switch) -> str:
    """Return how hooks are switched off; empty where they are not."""
    value: Any = settings
    for token in switch.pointer[1:].split("/"):
        if not isinstance(value, Mapping):
            return ""
        value = value.get(token)
    if switch.equals is not None and value is switch.equals:
        return f"switched off: {switch.pointer} is {json.dumps(value)}"
    if not isinstance(value, list) or switch.holds not in value:
        return ""
    return f"switched off: {switch.pointer} has {switch.holds}"


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines(keepends=True)


def _replace(path: Path, data: bytes) -> None:
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    mode = 0o600
    if path.exists():
        mode = path.stat().st_mode & 0o777
    made, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
