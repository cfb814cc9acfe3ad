"""The shapes of what the readers return.

A fact states what a text means; it never decides. A fact that could not be established states that
(``certain``, ``parsed``, ``valid``), and a decision should treat that as the dangerous case.
``argument`` is the JSON pointer that the caller gave for the text, and ``inferred`` that no
declaration names the kind of text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypedDict

from agenttool_otel.readers.vocabulary import (
    AddressClass,
    PathAccess,
    PathClass,
    PathRejection,
    UrlRejection,
    WindowsForm,
)
from agenttool_otel.values.tables import load_table
from agenttool_otel.values.words import OneOf

_Access: TypeAlias = Annotated[str, OneOf(PathAccess)]
_Form: TypeAlias = Annotated[str, OneOf(WindowsForm)]
# a host may protect places of a class of its own
_Sensitive: TypeAlias = Annotated[str, OneOf(PathClass, open=True)]
_NoPath: TypeAlias = Annotated[str, OneOf(PathRejection)]
_NoUrl: TypeAlias = Annotated[str, OneOf(UrlRejection)]
_Address: TypeAlias = Annotated[str, OneOf(AddressClass)]
_READING: Final = ("read", "list", "execute", "enter")
_WRITING: Final = ("create", "append", "overwrite", "delete", "delete_tree")
_Operation: TypeAlias = Annotated[str, OneOf(_READING, _WRITING)]
_CATEGORIES: Final = (
    "reader",
    "writer",
    "deleter",
    "tree_deleter",
    "runner",
    "tester",
    "builder",
    "installer",
    "vcs_local",
    "vcs_remote",
    "vcs_config",
    "vcs_history",
    "network",
    "privileged",
    "service",
    "disk",
    "unknown",
)
_Category: TypeAlias = Annotated[str, OneOf(_CATEGORIES)]


class PathFact(TypedDict):
    """One path argument."""

    argument: str  # JSON pointer of the argument within input.input
    raw: str  # the text as it was given
    access: _Access  # read, write or unknown
    lexical: str  # absolute and normalised, without touching the file system
    resolved: str | None  # with symlinks followed; None when that could not be done
    roots: list[str]  # the roots that the resolved path lies in
    inside: bool  # the lexical path and every reading of the path lie in a root
    escapes: bool  # the text names a place inside, and some reading of the path leads out
    exists: bool | None  # whether something is there; null where that could not be seen
    symlink: bool  # some component is a symbolic link
    hard_links: int | None  # link count of a regular file, when detectable
    parent_refs: bool  # has a ".." component
    home: bool  # starts with "~"
    variables: bool  # has $VAR, ${VAR} or %VAR%
    encoded: bool  # encoded separators, dots, controls or invisible characters
    # misleading invisible or look-alike characters, full-width dots and separators
    confusable: bool
    # forms: drive, unc, device, stream, reserved_name, short_name, trailing, backslash
    windows: list[_Form]
    # key, credential, approval, policy, vcs, agent_config, system, content (a file to be read whose
    # text looks like it holds a secret), dotfile
    sensitive: _Sensitive | None
    # why this is no usable path: nul, control, empty, too_long, not_text ...
    rejected: _NoPath | None
    # "device:inode" that the check saw; for a file to be made, that of its nearest directory
    identity: str | None
    # False when the text means different files to different readers, or could not be resolved
    certain: bool
    inferred: bool  # no declaration of the argument as a path


class ResolvedAddress(TypedDict):
    """One address that a host name resolved to, pinned for the call."""

    address: str  # the address
    address_class: _Address  # as of a URL


class UrlFact(TypedDict):
    """One URL argument."""

    argument: str  # JSON pointer of the argument within input.input
    valid: bool  # it is a usable URL
    rejected: _NoUrl | None  # why it is no usable URL
    scheme: str  # in lower case
    host: str  # ASCII (IDNA) form, lower case
    host_unicode: str  # the same for people
    port: int | None  # explicit or the scheme's default
    path: str  # the URL's path
    credentials: bool  # has user information, or a parameter that is always a credential
    sensitive_query: bool  # has a signature, token or key among its query parameters
    address: str | None  # canonical address when the host is one, in whatever spelling
    # name, public, loopback, private, link_local, metadata, reserved, multicast, unspecified,
    # unknown (no host); of a name: what it is known to mean (localhost, metadata names,
    # 10.0.0.1.nip.io), else name
    address_class: _Address
    resolved: list[ResolvedAddress]  # only when resolution was asked for
    disagreement: bool  # a browser and a Python client would go to different hosts
    # the well-known or allowed host that this one imitates, or that its user information names
    lookalike: str | None
    # a public host that leads on to another, or keeps what it is asked: a shortener, a tunnel, a
    # collector
    relay: bool
    # the host, or a parent domain written as ".example.org", is among the allowed hosts
    allowed_host: bool
    certain: bool  # False when programs may read it differently
    inferred: bool  # no declaration of the argument as a URL


class ShellRedirect(TypedDict):
    """One redirection of a command."""

    operator: str  # such as > or 2>&1
    target: str  # where to
    writes: bool  # it writes to the target


class ShellPlace(TypedDict):
    """One place that a command uses."""

    # as the line names it, or as a glob's match; "." where a command takes the current directory by
    # itself
    word: str
    # read, list, create, append, overwrite, delete, delete_tree, execute or enter
    operation: _Operation
    covers: list[str]  # "root" and "home", where what is deleted is one of them or holds it
    # the same fact as a path argument with this text would have in the command's directory
    path: PathFact


class ShellCommand(TypedDict):
    """One simple command of a command line."""

    name: str  # the program
    argv: list[str]  # the words, the program first
    # each way to read the words, as written first: also behind wrappers and runners, with the
    # program's name alone, and without the options in front of a sub-command; what restricts holds
    # if any of them fits
    spellings: list[list[str]]
    # the words behind wrappers and assignments that are known to change nothing, for what permits;
    # empty where anything else stands before them
    plain: list[str]
    # of a command that runs git: why its repository may make git run programs, or is none that is
    # known to be harmless
    repository: str | None
    # a shell that runs nothing but the commands that are listed behind it, as bash -c does
    carries: bool
    assignments: list[str]  # names only
    redirects: list[ShellRedirect]  # its redirections
    # reader, writer, deleter, tree_deleter, runner, tester, builder, installer, vcs_local,
    # vcs_remote, vcs_config, vcs_history, network, privileged, service, disk or unknown
    category: _Category
    # where it runs, behind every cd of the line; None when that may be one of several
    directory: str | None
    places: list[ShellPlace]  # the places that it uses
    complete: bool  # whether these are all places that it uses
    # words that no reviewed table accounts for, which may write, load code or send: options, values
    # of options, inline code, and "-" for code that it reads from its input
    unreviewed: list[str]
    read_only: bool  # proven; never guessed
    reason: str  # why it is or is not proven read-only


class ShellFact(TypedDict):
    """One shell command argument."""

    argument: str  # JSON pointer of the argument within input.input
    parsed: bool  # plain words joined by && || ; | and nothing else
    unparsed: str | None  # the construct that ended the proof
    read_only: bool  # proven; never guessed
    sensitive_read: bool  # reads keys, credentials or the environment, or could carry data out
    writes: bool  # may write; True whenever read_only is not proven
    network: bool  # may reach the network
    connects: bool  # names a program that is known to reach it
    executes: bool  # runs another program or code that it was given
    destructive: bool  # deletes, overwrites or kills
    runs_download: bool  # runs what it fetches from the network
    complete: bool  # whether the commands' places are all that the line uses
    commands: list[ShellCommand]  # the line's simple commands
    inferred: bool  # no declaration of the argument as a command


class SqlFact(TypedDict):
    """One SQL argument."""

    argument: str  # JSON pointer of the argument within input.input
    parsed: bool  # it could be read as SQL
    unparsed: str | None  # why not
    dialect: str  # dialect that it was read in
    statements: list[str]  # select, insert, update, delete, create, drop, alter, grant ...
    read_only: bool  # proven; never guessed
    multiple: bool  # more than one statement
    ddl: bool  # it changes the schema
    tables_read: list[str]  # tables that it reads
    tables_written: list[str]  # tables that it changes
    unbounded_write: bool  # UPDATE or DELETE without WHERE
    comments: bool  # has comments, which can hide text from a person
    inferred: bool  # no declaration of the argument as SQL


def unestablished(kind: str, argument: str, *, inferred: bool, **members: Any) -> Any:
    """Return a fact (``path``, ``url``, ``shell`` or ``sql``) that nothing was established for: the
    dangerous case.
    """
    fact = {
        name: [] if type(value) is list else value for name, value in _unestablished()[kind].items()
    }
    fact["argument"], fact["inferred"] = argument, inferred
    fact.update(members)
    return fact


def unread(kind: str, argument: str, *, inferred: bool = True, **members: Any) -> Any:
    """Return the fact of a value that was not looked at, or could not be: everything may be."""
    return unestablished(
        kind, argument, inferred=inferred, **{**_unestablished()["unread"][kind], **members}
    )


@cache
def _unestablished() -> dict[str, Any]:
    table: dict[str, Any] = load_table(__package__, "data/unestablished.json")
    return table


Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host name; the second argument is the port. It raises OSError when
there are none.
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a fact depends on beside the text; the same for all arguments of a call."""

    # absolute directories that file tools should stay in; none means that no path is inside
    roots: tuple[str, ...] = ()
    # absolute directory that relative paths start from; the process's own when ``None``
    cwd: str | None = None
    # absolute directory that ``~`` stands for; the process's own when ``None``
    home: str | None = None
    # pairs of an absolute path (file or directory) and its class, for example the approval store's
    # file and ``approval``. Whatever lies below a directory, or is the same file by device and
    # inode, has the class
    protected: tuple[tuple[str, str], ...] = ()
    # host names that the operator allows, lower case. A leading dot means every subdomain. Names
    # that imitate one of them are reported as lookalikes
    allowed_hosts: tuple[str, ...] = ()
    # whether host names are resolved, so that their addresses are facts too. This leaves the
    # process
    resolve_dns: bool = False
    # whether paths may be looked up. When not, no path fact is certain
    read_file_system: bool = True
    # where the roots really are, when that was found out already
    real_roots: tuple[str, ...] | None = None
    # where roots and protected places lead, and which file is there, by their names: a dict for the
    # facts of one call, in which each is looked up once. Never for longer: one that was swapped
    # for a link must be seen at the very next call
    looked_up: dict[str, tuple[str | None, str | None]] | None = field(
        default=None, compare=False, repr=False
    )
    resolver: Resolver | None = None  # replaces the system's resolver
    dns_timeout: float = 2.0  # seconds that one look-up may take; a slower one counts as failed
