"""What a Governor opens: its stores, shared sessions, the places that no tool may reach, and
telemetry's settings.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.session_store import SessionStore, open_store
from agenttool_otel.context.sessions import Session, SessionBook
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.names import Env
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.telemetry import Telemetry, TelemetrySettings
from agenttool_otel.telemetry.sinks import open_sinks
from agenttool_otel.values.own_directory import OwnDirectory

if TYPE_CHECKING:  # stores are imported when one is opened
    from agenttool_otel.approvals.store.store import ApprovalStore
    from agenttool_otel.evidence.record import DecisionRecorder
    from agenttool_otel.results.stores.store import ResultStore


def open_results(place: str, owner: object) -> tuple[ResultStore, Callable[[], object] | None]:
    """Open the store of results; without a place, in a private directory, with what removes it."""
    from agenttool_otel.results.stores.local import LocalBackend
    from agenttool_otel.results.stores.store import ResultStore

    if place:
        return ResultStore(LocalBackend(place)), None
    # nobody but its owner can resolve its references, so nothing of it is kept after it, also where
    # nobody closes it
    private = OwnDirectory("payloads", owner)
    return ResultStore(LocalBackend(private.path)), private.remove


def approvals_opener(
    approvals: ApprovalStore | str | None, settings: Settings
) -> Callable[[], ApprovalStore]:
    """Return what opens the approval store when it is first needed."""
    if approvals is not None and not isinstance(approvals, (str, Path)):
        return lambda: approvals
    url = approvals or settings.approvals_url or "sqlite://"

    def opened() -> ApprovalStore:
        # SQLAlchemy is slow to import
        from agenttool_otel.approvals.store.store import ApprovalStore

        store = ApprovalStore(
            url,
            default_ttl=timedelta(seconds=settings.approvals_ttl),
            max_pending=settings.approvals_max_pending,
            max_pending_per_session=settings.approvals_max_pending_per_session,
        )
        store.recover()  # what a crash left behind is asked again, never run by itself
        return store

    return opened


def fact_environment(
    settings: Settings,
    protected: tuple[tuple[str, str], ...],
    context: AgentContext,
    session: Session,
) -> FactEnvironment:
    """Return what facts of a call depend on beside its arguments."""
    return FactEnvironment(
        roots=context.roots,
        cwd=context.cwd,
        protected=protected,
        allowed_hosts=settings.allowed_hosts,
        resolve_dns=settings.resolve_dns,
        looked_up={},
        ledger=session.ledger_with(context.user_text),
    )


def open_sessions(settings: Settings) -> SessionBook:
    """Open the sessions: in this process, or shared where the settings name a place.

    Raises:
        ConfigurationError: the place can't be used, or there is no key for it.
    """
    max_bytes = settings.sessions_memory_mb * 2**20
    store = _session_store(settings)
    if store is None:
        return SessionBook(max_bytes=max_bytes)
    # loads what seals
    from agenttool_otel.context.shared_session import SharedSessionBook

    return SharedSessionBook(store, max_bytes=max_bytes)


def _session_store(settings: Settings) -> SessionStore | None:
    """Open where sessions are shared, under the key of approvals or, in SQLite, the one beside the
    database.
    """
    url = settings.sessions_url
    if url == "approvals":
        url = settings.approvals_url
        if not url:
            raise ConfigurationError("sessions_url is approvals, and there is no approvals_url")
    if not url:
        return None
    # SQLAlchemy is slow to import
    from agenttool_otel.approvals.store.database import parse_url
    from agenttool_otel.approvals.store.sealing import load_or_create_key_file, parse_key

    is_redis = url.startswith(("redis:", "rediss:", "unix:"))
    place: Any = url if is_redis else parse_url(url)
    stated_key = os.environ.get(Env.APPROVALS_KEY)
    if stated_key:
        return open_store(place, parse_key(stated_key))
    # only a SQLite file has a place for a key beside it
    if is_redis or place.get_backend_name() != "sqlite" or not place.database:
        raise ConfigurationError(f"shared sessions need a key: set {Env.APPROVALS_KEY}")
    return open_store(place, load_or_create_key_file(Path(f"{place.database}.key"), ""))


def protected_places(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the places that no tool may reach, with their class: the policy's own, approvals and
    sessions.
    """
    places = [
        (settings.policy_bundle or str(default_bundle_path()), "policy"),
        (settings.policy_data, "policy"),
        (settings.policy_extension, "policy"),
        (settings.shadow_policy, "policy"),
        (settings.policy_key_file, "policy"),
        (settings.policy_token_file, "policy"),
        (settings.policy_ca_file, "policy"),
    ]
    places.append((settings.tools_file, "policy"))
    places.append((settings.sandbox_profiles, "policy"))
    for url in (settings.approvals_url, settings.sessions_url):
        if url.startswith("sqlite:///"):
            places.append((url.removeprefix("sqlite:///"), "approval"))
    return tuple(
        (str(Path(place).absolute()), kind)
        for place, kind in places
        if place and "://" not in place
    )


def use_profiles(settings: Settings) -> None:
    """Make the operator's own profiles known, where the settings name a file of them.

    Raises:
        ConfigurationError: the file can't be used.
    """
    if settings.sandbox_profiles:
        from agenttool_otel.enforcement.profile_file import use_profile_file  # few have any

        use_profile_file(settings.sandbox_profiles)


def open_decisions(target: str, telemetry: Telemetry) -> DecisionRecorder | None:
    """Open where decisions are recorded; ``None`` where nothing is named or it can't be used.

    Raises:
        ConfigurationError: a function is to get them, and there is no key.
    """
    if not target and not telemetry.settings.decision_subscribers:
        return None
    from agenttool_otel.evidence.opening import open_recorder

    return open_recorder(target, telemetry)


def telemetry_settings(settings: Settings) -> TelemetrySettings:
    """Make telemetry settings of the general ones, with the global providers.

    Args:
        settings: the settings.
    """
    return TelemetrySettings(
        capture=settings.capture,
        events=settings.events,
        detail=settings.detail,
        verbose=settings.verbose,
        span_mode=settings.span_mode,
        answerers=settings.answerers,
        guardrail_names=settings.guardrail_names,
        user_ids=settings.user_ids,
        sinks=open_sinks(settings.sink),
    )
