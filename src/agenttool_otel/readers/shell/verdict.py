"""What is known of one command: the result that the checks fill in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

START = ("",)
"""The directories of a line before its first ``cd``: where it was started, which is unknown."""


class Refused(Exception):
    """Ends the proof of one command; the message names the reason."""


class Follow(Enum):
    """Which links a command follows below a directory that it reads."""

    NONE = "none"
    """Links below it are passed over."""
    NAMED = "named"
    """Links are followed whose own names are listed: ``find . | xargs cat``."""
    ALL = "all"
    """All links are followed: ``grep -R``."""


class Tree(NamedTuple):
    """What a command reads of all that lies below a directory."""

    names: tuple[str, ...] = ()
    """Patterns of the file names that are read; none for all."""
    hidden: bool = True
    """Names that begin with a dot are read, too."""
    follow: Follow = Follow.NONE
    tracked: bool = False
    """Only what git's index holds."""
    bare_names: bool = False
    """The names are given without ``./`` in front, so that one may be an option."""


class FileAccess(NamedTuple):
    """One place that a command reads or changes, as its line names it."""

    path: str
    operation: str
    """One of those of ``ShellPlace``."""
    glob: bool = False
    """The shell puts the names in its place that it matches."""
    tree: Tree | None = None
    """What lies below it is read, too."""
    splits_names: bool = False
    """Its names are split at blanks, so that a name with a blank is another one."""
    only_files: bool = False
    """None of the names that it matches is a directory, which would be listed instead."""
    needs_directory: bool = False
    """It is only touched where its directory part is a directory: ``cp a b`` makes ``b/a``."""


@dataclass(slots=True)
class Warnings:
    """What may happen; true unless it is known to be false where nothing is proven."""

    sensitive: bool = False
    """Reads credentials or the environment."""
    network: bool = False
    """May send or fetch."""
    connects: bool = False
    """Names what is known to send or fetch."""
    executes: bool = False
    """May run code or another program that it was given."""
    destructive: bool = False
    """Deletes, overwrites or kills."""
    other_shell: bool = False
    """Looks like text of PowerShell or cmd."""


@dataclass(slots=True)
class Verdict:
    """What is known of one command."""

    directories: tuple[str, ...] = START
    """The directories that it may run in, by the text of the line."""
    wrappers: int = 0
    """How many wrappers, such as ``timeout 5``, stand in front of it."""
    read_only: bool = False
    """Proven."""
    reason: str = ""
    """Why it is proven, or why not."""
    category: str = "unknown"
    """One of those of ``ShellCommand``."""
    accesses: list[FileAccess] = field(default_factory=list)
    complete: bool = True
    """The accesses are all that it has."""
    names_may_be_options: bool = False
    """It is only proven where all places are known: a file name could be an option."""
    runs_git: bool = False
    """It is only proven where the repository's configuration runs nothing."""
    unreviewed: list[str] = field(default_factory=list)
    """Its words that no table accounts for."""
    script: str | None = None
    """The text that ``sh -c`` and the like run, to be read in turn."""
    warnings: Warnings = field(default_factory=Warnings)
