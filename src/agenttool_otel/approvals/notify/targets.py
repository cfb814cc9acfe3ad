"""Where notices go, about which requests, and when: from a TOML file or one address."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import RiskLevel
from agenttool_otel.values.addresses import is_loopback


class Format(StrEnum):
    """What a target takes."""

    CLOUDEVENTS = "cloudevents"
    """A CloudEvent 1.0 in structured mode, signed as Standard Webhooks."""
    SLACK = "slack"
    """Slack's blocks, for an incoming webhook."""
    TEAMS = "teams"
    """An Adaptive Card, for a workflow of Microsoft Teams."""


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"(\d{1,6})([smhd])")


@dataclass(frozen=True)
class Target:
    """One place that notices go to.

    Attributes:
        name: its name in logs and in the file of what was sent.
        url: https address that takes POST requests, in ASCII without white space; in a chat it is a
          credential. http on this machine alone.
        format: what it takes.
        roles: only requests that one of these roles may answer, or that any person may; empty: all.
        risks: only these risks; empty: all.
        after: how long a request has to wait first. 0: from the beginning; otherwise the notice is
          an escalation.
        remind: how long after each notice another one follows while nobody answers; 0: never.
        expiring: how long before the end a notice follows; 0: never.
        ends: whether it gets how a request ended.

    Raises:
        ConfigurationError: an address that is not https or that no request can have, or a risk that
            is none.
    """

    name: str
    url: str = field(repr=False)
    format: Format = Format.CLOUDEVENTS
    roles: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    after: timedelta = timedelta(0)
    remind: timedelta = timedelta(0)
    expiring: timedelta = timedelta(0)
    ends: bool = True

    def __post_init__(self) -> None:
        if not _is_sendable(self.url) or not self._is_private:
            # the address is in no message: in a chat it is a credential
            raise ConfigurationError(
                f"target {self.name}: its address has to be https://, in ASCII without white space"
            )
        for risk in self.risks:
            if risk not in set(RiskLevel):
                raise ConfigurationError(f"target {self.name}: there is no risk {risk[:40]}")

    @property
    def is_local(self) -> bool:
        """Whether the address is this machine's alone."""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def _is_private(self) -> bool:
        scheme = urlsplit(self.url).scheme
        return scheme == "https" or (scheme == "http" and self.is_local)


@dataclass(frozen=True)
class Plan:
    """What is to be sent where.

    Attributes:
        targets: the places.
        page: https address of the approvals page that notices link to.
    """

    targets: tuple[Target, ...]
    page: str

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.page)
        except ValueError:  # https://[page
            parts = urlsplit("")
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ConfigurationError("notices link to the approvals page: state its address")


def _is_sendable(url: str) -> bool:
    """Return whether a request can be sent to an address."""
    # a path "/hook/ü" or "/a b" can't be written into a request
    if not all("!" <= character <= "~" for character in url):
        return False
    try:
        parts = urlsplit(url)  # https://[host
        port = parts.port  # https://host:99999
        host = (parts.hostname or "").encode("idna")  # a label of 70 letters
    except ValueError:
        return False
    return bool(host) and port != 0


def read_span(text: str) -> timedelta:
    """Return a time such as ``90s``, ``30m``, ``12h`` or ``7d``.

    Args:
        text: the time; empty: 0.

    Raises:
        ConfigurationError: it is none.
    """
    if not text:
        return timedelta(0)
    found = _SPAN.fullmatch(text)
    if not found:
        raise ConfigurationError(f"a time is 90s, 30m, 12h or 7d, and not {text[:40]}")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def read_plan(path: Path, page: str, environment: Mapping[str, str] = os.environ) -> Plan:
    """Return the plan of a TOML file.

    Args:
        path: the file: ``page`` and one table ``[targets.NAME]`` a target, with the attributes of
          ``Target``, or ``url_env`` with the name of a variable that holds the address.
        page: the page's address where the file has none.
        environment: the variables.

    Raises:
        ConfigurationError: the file can't be read, has a word that is not known, or no target.
    """
    try:
        stated = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"{path.name} can't be read as TOML: {type(error).__name__}"
        ) from None
    tables = stated.pop("targets", None)
    page = stated.pop("page", page)
    if stated:
        raise ConfigurationError(f"{path.name}: there is no setting {min(stated)[:40]}")
    if not isinstance(tables, dict) or not tables:
        raise ConfigurationError(f"{path.name}: it has no [targets.NAME]")
    if not isinstance(page, str):
        raise ConfigurationError(f"{path.name}: page is no text")
    targets = [_target_of(name, table, environment) for name, table in tables.items()]
    return Plan(tuple(targets), page.rstrip("/"))


def _target_of(name: str, table: Any, environment: Mapping[str, str]) -> Target:
    if not isinstance(table, dict):
        raise ConfigurationError(f"target {name}: it is no table")
    values = dict(table)
    variable = values.pop("url_env", "")
    if variable:
        values["url"] = environment.get(str(variable), "")
    known = {each.name for each in fields(Target)} - {"name"}
    for key in values.keys() - known:
        raise ConfigurationError(f"target {name}: there is no setting {key[:40]}")
    read = {key: _read(name, key, value) for key, value in values.items()}
    return Target(name, **{"url": "", **read})


def _read(name: str, key: str, value: Any) -> Any:
    if key in ("after", "remind", "expiring") and isinstance(value, str):
        return read_span(value)
    is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if key in ("roles", "risks") and is_list:
        return tuple(value)
    if key == "format" and value in set(Format):
        return Format(value)
    if (key == "url" and isinstance(value, str)) or (key == "ends" and isinstance(value, bool)):
        return value
    raise ConfigurationError(f"target {name}: {key} can't be read")
