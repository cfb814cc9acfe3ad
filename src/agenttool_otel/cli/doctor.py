"""``agenttool doctor``: what is in force here, from where it is, and what does not work.

agenttool doctor
agenttool doctor --json
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import typer
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.plain_text import clean
from agenttool_otel.cli.rendering import out
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import AgentToolError, ConfigurationError
from agenttool_otel.names import SCHEMA_VERSION, Env, PolicyMode
from agenttool_otel.redaction import Redactor

EXIT_CODES: Final = {"works": 0, "broken": 1, "usage": 2}
"""What the exit codes of this command mean."""
_PACKAGES: Final = (
    *("agenttool-otel", "opentelemetry-api", "opentelemetry-sdk", "pydantic", "wrapt"),
    *("opa-python-client", "langchain-core", "langgraph", "sqlalchemy"),
)
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_EXPORTERS: Final = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER")
_CONNECT_SECONDS: Final = 2.0

app = typer.Typer(pretty_exceptions_show_locals=False)  # local variables hold settings


class State(StrEnum):
    """How a part is."""

    WORKS = "works"
    """It was tried, and works."""
    ABSENT = "absent"
    """It is not set up, or this host does not have it; nothing asks for it."""
    BROKEN = "broken"
    """It is set up, and does not work."""


_STYLES: Final = {State.WORKS: "green", State.ABSENT: "dim", State.BROKEN: "bold red"}


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the package, as it is on this host.

    Attributes:
        name: what it is.
        state: how it is.
        detail: what was found; secrets are redacted.
    """

    name: str
    state: State
    detail: str


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What is in force here, from where it is, and what does not work."""
    settings = Settings.load()
    parts = list(_parts(settings))
    if as_json:
        print_json(
            {
                "versions": _versions(),
                "settings": list(_settings(settings)),
                "parts": [asdict(part) for part in parts],
            }
        )
    else:
        _show(settings, parts)
    if any(part.state is State.BROKEN for part in parts):
        raise typer.Exit(EXIT_CODES["broken"])


def _versions() -> dict[str, str]:
    found = {
        "standard": f"Agent Tool {SCHEMA_VERSION}",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _settings(settings: Settings) -> Iterator[dict[str, str]]:
    """Yield each setting's variable, value and source; the environment's come first."""
    stated = [item for item in Settings.variables().items() if item[1] in os.environ]
    others = [item for item in Settings.variables().items() if item[1] not in os.environ]
    for source, items in (("environment", stated), ("default", others)):
        for name, variable in items:
            value = _text(getattr(settings, name))
            yield {"variable": variable, "value": value, "source": source}


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        value = ", ".join(map(str, value))
    return _redacted(str(value))


def _redacted(text: str) -> str:
    return str(Redactor().redact(text).value)


def _parts(settings: Settings) -> Iterator[Part]:
    yield _tried("settings", lambda: _check_settings(settings))
    yield _tried("policy", lambda: _check_policy(settings))
    yield _tried("OPA program", _check_opa_program)
    yield _tried("approvals", lambda: _check_approvals(settings))
    yield from _sandboxes(settings)
    yield _tried("sandbox rehearse", lambda: _check_rehearsals(settings))
    yield _tried("exporters", _check_exporters)


def _tried(name: str, check: Callable[[], tuple[State, str]]) -> Part:
    """Try a part; whatever it raises is what is broken."""
    try:
        state, detail = check()
    except ModuleNotFoundError as error:
        return Part(name, State.ABSENT, f"the package {error.name} is not installed")
    except (AgentToolError, OSError, ValueError) as error:
        return Part(name, State.BROKEN, _redacted(str(error)))
    return Part(name, state, _redacted(detail))


def _check_settings(settings: Settings) -> tuple[State, str]:
    if settings.problems:
        return State.BROKEN, "; ".join(settings.problems)
    stated = sum(variable in os.environ for variable in Settings.variables().values())
    return State.WORKS, f"{stated} from the environment"


def _check_policy(settings: Settings) -> tuple[State, str]:
    from agenttool_otel.policy.engines.opa_server import OpaServerEngine
    from agenttool_otel.policy.open import open_engines

    opened = open_engines(settings, None, data=None, extension=None, on_reload=lambda result: None)
    try:
        for engine in opened.engines:
            if isinstance(engine, OpaServerEngine) and not engine.healthy():
                return State.BROKEN, f"no OPA answers at {settings.opa_url}"
        place = settings.opa_url or settings.policy_bundle or "the stock bundle"
        revision = opened.engines[0].revision or "revision not known before the first answer"
        mode = "decides" if settings.policy_mode == PolicyMode.ENFORCE else "blocks nothing"
        return State.WORKS, f"{settings.policy_engine}, {place}, {revision}; it {mode}"
    finally:
        for engine in (*opened.engines, *opened.shadow):
            engine.close()
        opened.close()


def _check_opa_program() -> tuple[State, str]:
    from agenttool_otel.authoring.opa_program import find_opa

    program = find_opa()
    if program is None:
        return State.ABSENT, f"none: set {Env.OPA_PROGRAM}, or put opa into PATH"
    return State.WORKS, program


def _check_approvals(settings: Settings) -> tuple[State, str]:
    if not settings.approvals_url:
        return State.ABSENT, f"in memory, lost with the process: set {Env.APPROVALS_URL}"
    from agenttool_otel.approvals.store.database import missing_file
    from agenttool_otel.approvals.store.store import ApprovalStore

    if missing_file(settings.approvals_url) is not None:
        return State.ABSENT, f"{settings.approvals_url} is made by the first process that asks"
    with contextlib.closing(ApprovalStore(settings.approvals_url)) as store:
        waiting = store.levels().pending
    return State.WORKS, f"{settings.approvals_url}, {waiting} pending"


def _sandboxes(settings: Settings) -> Iterator[Part]:
    from agenttool_otel.enforcement import available
    from agenttool_otel.govern.opening import use_profiles

    try:
        use_profiles(settings)
    except ConfigurationError as error:
        yield Part("sandbox profiles", State.BROKEN, str(error))
    for profile, proof in available().items():
        if proof.proven:
            yield Part(f"sandbox {profile}", State.WORKS, f"held by {proof.mechanism}")
        else:
            yield Part(f"sandbox {profile}", State.ABSENT, proof.reason)


def _check_rehearsals(settings: Settings) -> tuple[State, str]:
    from agenttool_otel.enforcement.rehearsal import default_directory, rehearsal_failure

    place = Path(settings.rehearsals_dir or default_directory())
    failure = rehearsal_failure(place)
    if failure:
        return State.ABSENT, failure
    return State.WORKS, f"held by bubblewrap, layers in {place}"


def _check_exporters() -> tuple[State, str]:
    named = [f"{name}={os.environ[name]}" for name in _EXPORTERS if os.environ.get(name)]
    endpoint = os.environ.get(_ENDPOINT, "")
    if not endpoint:
        detail = ", ".join(named) or f"none by the environment: set {_ENDPOINT}"
        return State.ABSENT, detail
    place = urlsplit(endpoint)
    if place.hostname is None:
        return State.BROKEN, f"{_ENDPOINT} is no URL"
    port = place.port or (443 if place.scheme == "https" else 80)
    with socket.create_connection((place.hostname, port), _CONNECT_SECONDS):
        return State.WORKS, ", ".join([endpoint, *named])


def _show(settings: Settings, parts: list[Part]) -> None:
    console = out()
    console.print(Text(", ".join(f"{name} {value}" for name, value in _versions().items())))
    table = Table("part", "", "found", title="Parts", title_justify="left")
    for part in parts:
        table.add_row(part.name, Text(part.state, _STYLES[part.state]), Text(clean(part.detail)))
    console.print(table)
    table = Table("variable", "value", "from", title="Settings", title_justify="left")
    for row in _settings(settings):
        table.add_row(row["variable"], Text(clean(row["value"])), row["source"])
    console.print(table)
