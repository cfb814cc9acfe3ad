"""A command line as a tree of words: simple commands, their redirections and assignments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Unproven(Exception):
    """The line holds a construct that is not read. ``construct`` names it."""

    def __init__(self, construct: str) -> None:
        super().__init__(construct)
        self.construct = construct


@dataclass(slots=True)
class Word:
    """One literal word of a command."""

    text: str
    """The word after quote removal: ``a b`` for ``"a b"``."""
    start: int = 0
    """Offset of its first character in the line."""
    end: int = 0
    """Offset behind its last character."""
    quoted: bool = False
    """Some part of it is quoted or escaped."""
    glob: bool = False
    """It holds an unquoted ``*``, ``?`` or ``[``: any number of file names may take its place."""
    glob_first: bool = False
    """It begins with such a character, so a file name that begins with ``-`` may take its place."""


class Redirect(NamedTuple):
    """One redirection."""

    fd: str
    """The file descriptor as written, mostly empty."""
    operator: str
    """Such as ``>`` or ``<<<``."""
    target: Word
    """The file, the text of a here-string, or the delimiter of a here-document."""

    @property
    def is_input(self) -> bool:
        """Whether the command reads from it."""
        return "<" in self.operator

    @property
    def writes(self) -> bool:
        """Whether it may change a file. Copies of descriptors and ``/dev/null`` change none."""
        target = self.target.text
        if self.operator in ("<", "<<", "<<<", "<&"):
            return False
        # 2>&1; a digit of another script is a file name to the shell
        if self.operator == ">&" and len(target) == 1 and target in "0123456789":
            return False
        plain = self.operator in (">", ">>", "&>", "&>>", ">&", ">|")
        return not plain or target != "/dev/null"

    @property
    def appends(self) -> bool:
        """Whether it adds to the end of the file."""
        return self.operator in (">>", "&>>")

    @property
    def truncates(self) -> bool:
        """Whether what the file held is lost."""
        return self.operator in (">", ">|", "&>", ">&")

    @property
    def connects(self) -> bool:
        """Whether bash opens a connection for it: ``< /dev/tcp/example.org/80``."""
        return self.target.text.startswith(("/dev/tcp/", "/dev/udp/"))


class Assignment(NamedTuple):
    """A variable that is set for one command: ``LANG=C`` in ``LANG=C ls``."""

    name: str
    text: str
    """``NAME=value`` after quote removal; empty where the value is not literal."""


@dataclass(slots=True)
class Simple:
    """One simple command."""

    words: list[Word] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    joint: str = ""
    """The operator in front of it: ``&&``, ``||``, ``;`` or ``|``; empty for the first command."""
    group: tuple[int, ...] = ()
    """The numbers of the subshells that it stands in, outermost first."""

    @property
    def texts(self) -> list[str]:
        """The texts of its words."""
        return [word.text for word in self.words]

    @property
    def reads_redirect(self) -> bool:
        """Whether its input is redirected, so that no pipeline feeds it."""
        return any(redirect.is_input for redirect in self.redirects)
