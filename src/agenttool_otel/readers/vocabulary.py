"""The words that the readers' facts hold; each leaves the process in policy inputs and records."""

from __future__ import annotations

from enum import StrEnum


class PathAccess(StrEnum):
    """What a call does with a path, as far as its caller states it."""

    READ = "read"
    """The file or folder is read."""
    WRITE = "write"
    """It is made, changed or deleted."""
    UNKNOWN = "unknown"
    """It is not stated."""


class PathClass(StrEnum):
    """Kinds of places that deserve care."""

    KEY = "key"
    """A private key."""
    CREDENTIAL = "credential"
    """A password, a token, or a file that holds some."""
    APPROVAL = "approval"
    """The store of approvals."""
    POLICY = "policy"
    """The policy that decides."""
    VCS = "vcs"
    """The inside of a version control system, such as ``.git``."""
    AGENT_CONFIG = "agent_config"
    """What configures an agent: its instructions, hooks and permissions."""
    SYSTEM = "system"
    """What belongs to the operating system."""
    CONTENT = "content"
    """A file whose text looks like it holds a secret."""
    DOTFILE = "dotfile"
    """A hidden file that may make a program run something."""


class PathRejection(StrEnum):
    """Why a value is no usable path."""

    NOT_TEXT = "not_text"
    """It is no text."""
    EMPTY = "empty"
    """The text is empty."""
    NUL = "nul"
    """It holds a NUL, where the file system ends a name."""
    CONTROL = "control"
    """It holds a control character."""
    SURROGATE = "surrogate"
    """It holds a lone surrogate, which has no bytes."""
    TOO_LONG = "too_long"
    """It is longer than any path that a file system takes."""
    NOT_NORMALIZED = "not_normalized"
    """Its Unicode is not normalised, so that two names look the same."""
    URL = "url"
    """It is a URL."""
    LOOP = "loop"
    """Its symbolic links lead in a circle."""
    SPECIAL_FILE = "special_file"
    """It is a device, socket or pipe."""
    TOO_MANY = "too_many"
    """The call has more paths than are looked at."""
    INTERNAL = "internal"
    """The reader failed."""


class WindowsForm(StrEnum):
    """Windows spellings that mean another file there than here."""

    DRIVE = "drive"
    """``C:name``."""
    UNC = "unc"
    r"""``\\server\share``."""
    DEVICE = "device"
    r"""``\\?\`` or ``\\.\``."""
    STREAM = "stream"
    """``name:stream``."""
    RESERVED_NAME = "reserved_name"
    """``CON``, ``NUL`` and their like."""
    SHORT_NAME = "short_name"
    """``PROGRA~1``."""
    TRAILING = "trailing"
    """A dot or blank at the end, which Windows takes off."""
    BACKSLASH = "backslash"
    """A backslash, which separates there."""


class AddressClass(StrEnum):
    """Where an address or host leads."""

    NAME = "name"
    """A host name that was not resolved."""
    PUBLIC = "public"
    """The public Internet."""
    LOOPBACK = "loopback"
    """This machine."""
    PRIVATE = "private"
    """A private network (RFC 1918, RFC 4193)."""
    LINK_LOCAL = "link_local"
    """The link alone (RFC 3927)."""
    METADATA = "metadata"
    """A cloud's metadata service, which hands out credentials."""
    RESERVED = "reserved"
    """Kept for other purposes (IANA's special-purpose registry)."""
    MULTICAST = "multicast"
    """A group of hosts."""
    UNSPECIFIED = "unspecified"
    """``0.0.0.0`` or ``::``, which many systems take for this machine."""
    UNKNOWN = "unknown"
    """There is no host."""


class UrlRejection(StrEnum):
    """Why a value is no usable URL."""

    NOT_TEXT = "not_text"
    """It is no text."""
    EMPTY = "empty"
    """The text is empty."""
    CONTROL = "control"
    """It holds a control character."""
    SPACE = "space"
    """It holds a blank."""
    SURROGATE = "surrogate"
    """It holds a lone surrogate, which has no bytes."""
    TOO_LONG = "too_long"
    """It is longer than clients take."""
    NO_SCHEME = "no_scheme"
    """It has no scheme."""
    NO_HOST = "no_host"
    """It has no host, and its scheme needs one."""
    MALFORMED = "malformed"
    """Clients refuse it, or read it differently."""
    TOO_MANY = "too_many"
    """The call has more URLs than are looked at."""
    INTERNAL = "internal"
    """The reader failed."""
