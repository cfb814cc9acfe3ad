"""Commands that leave a program open which then takes input that no hook sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from agenttool_otel.readers import shell_fact


def refuse_open_shell(
    argument: str, programs: Collection[str], arguments: Mapping[str, Any]
) -> None:
    """Refuse a command that starts a program which waits for further commands.

    Args:
        argument: the argument that is the command.
        programs: the names of such programs.
        arguments: the call's arguments.

    Raises:
        ValueError: it does.
    """
    command = arguments.get(argument)
    # another type is refused by the schema
    if not isinstance(command, str):
        return
    for part in shell_fact(command)["commands"]:
        if _waits(part["argv"], programs):
            raise ValueError(
                "this leaves a program open, and no hook sees what is typed into it: "
                "give it its commands at once (sh -c '...')"
            )


def _program(word: str) -> str:
    # /usr/bin/python3.11 is a python
    return word.rpartition("/")[2].rstrip(".0123456789")


def _waits(words: list[str], programs: Collection[str]) -> bool:
    names = [_program(word) for word in words]
    programs = {_program(name) for name in programs}
    if programs.isdisjoint(names):
        return False
    # "bash", "env bash", "bash --login": nothing that it is to run; "python3 -i x.py": it stays open
    options = [word for word in words if word.startswith("-")]
    stays = any(not word.startswith("--") and "i" in word for word in options)
    last = next((name for name in reversed(names) if not name.startswith("-")), "")
    return stays or last in programs
