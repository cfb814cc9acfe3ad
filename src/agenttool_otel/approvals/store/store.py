"""The public approval store: every operation of its repositories, also for asynchronous code."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import os
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from agenttool_otel.approvals.announcing import AnswerRecorder
from agenttool_otel.approvals.identity import args_digest as canonical_digest
from agenttool_otel.approvals.store import evidence
from agenttool_otel.approvals.store.answers import Answers
from agenttool_otel.approvals.store.claims import Claims
from agenttool_otel.approvals.store.clock import StoreClock, from_us
from agenttool_otel.approvals.store.database import Database, parse_url
from agenttool_otel.approvals.store.grants import Grants
from agenttool_otel.approvals.store.levels import Levels
from agenttool_otel.approvals.store.outbox import Outbox
from agenttool_otel.approvals.store.overview import Overview
from agenttool_otel.approvals.store.requests import Limits, Requests
from agenttool_otel.approvals.store.required import RequiredCalls
from agenttool_otel.approvals.store.sealing import (
    Sealer,
    generate_key,
    load_or_create_key_file,
    parse_key,
    replacing_key_file,
)
from agenttool_otel.approvals.types import (
    MAX_PENDING,
    MAX_PENDING_PER_SESSION,
    ApprovalAnswer,
    AskLimit,
    ChainReport,
    Claim,
    LogEntry,
    StoredCall,
)
from agenttool_otel.errors import ApprovalError, ApprovalStoreError, ConfigurationError
from agenttool_otel.names import Env
from agenttool_otel.telemetry.stores import StoreLevels
from agenttool_otel.values.run_to_completion import run_to_completion

_P = ParamSpec("_P")
_T = TypeVar("_T")

DEFAULT_TTL: Final = timedelta(days=7)
"""How long a request without an expiry of its own may be answered and used."""

CLOSE_SECONDS: Final = 5.0
"""How long ``close`` tries to store what could not be stored before."""

# the event loop itself keeps no reference to its tasks
_RELEASING: Final[set[asyncio.Future[None]]] = set()


def _of(
    repository: str, method: Callable[Concatenate[Any, _P], _T]
) -> Callable[Concatenate[ApprovalStore, _P], _T]:
    """Return a method of the store that is a method of one of its repositories."""

    @functools.wraps(method)
    def forward(self: ApprovalStore, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return method(getattr(self, repository), *args, **kwargs)

    return forward


def _in_thread(
    method: Callable[Concatenate[ApprovalStore, _P], _T],
) -> Callable[Concatenate[ApprovalStore, _P], Coroutine[Any, Any, _T]]:
    """Return the same operation for asynchronous code; its task may be canceled only once it has
    committed.
    """

    @functools.wraps(method)
    async def run(self: ApprovalStore, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        value, canceled = await run_to_completion(functools.partial(method, self, *args, **kwargs))
        if canceled is not None:
            raise canceled
        return value

    return run


class ApprovalStore:
    """Approval requests, their answers, claims, grants and evidence in one database.

    ``acreate``, ``aanswer``, ``aclaim`` ... have the arguments, results and exceptions of the
    methods without the ``a``; they run in a worker thread, so that no lock or disk blocks the event
    loop. Safe for threads and across fork.

    Attributes:
        outbox: what is known and could not be stored yet.
        recorder: records each answer that is given through this object as a span; a Governor
          sets its own.

    Args:
        url: a path, ``sqlite:///path``, ``sqlite://`` (in memory, this process only) or
          ``postgresql://...``.
        key: 32 bytes, or their base64 or hexadecimal text, that seal what is stored; otherwise
            ``AGENTTOOL_APPROVALS_KEY``, otherwise (SQLite only) a file of mode 0600 beside the
            database, made on first use.
        clock: gives the wall time; for tests.
        ticks: gives seconds that only grow; for tests.
        timeout: seconds that an operation waits for a lock or a connection before it fails.
        default_ttl: lifetime of a request that states none, in seconds if a number.
        lease: after which time a claim of a process that can't be seen from here counts as lost, in
            seconds if a number.
        ask_limit: how often one actor may ask; further requests are refused.
        max_pending: how many requests may wait for an answer at once; further ones are refused. 0:
          no limit.
        max_pending_per_session: how many of one session may.
        digest: gives the digest of JSON arguments.

    Raises:
        ConfigurationError: no usable URL or key, or a missing extra.
        ApprovalStoreError: the database can't be opened, or was sealed with another key.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        key: str | bytes | None = None,
        clock: Callable[[], datetime] | None = None,
        ticks: Callable[[], float] | None = None,
        timeout: float = 5.0,
        default_ttl: timedelta | float = DEFAULT_TTL,
        lease: timedelta | float = timedelta(hours=1),
        ask_limit: AskLimit | None = None,
        max_pending: int = MAX_PENDING,
        max_pending_per_session: int = MAX_PENDING_PER_SESSION,
        digest: Callable[[Any], str] = canonical_digest,
    ) -> None:
        self._key_file: Path | None = None
        self.outbox = Outbox()
        self.recorder = AnswerRecorder()
        self._db = Database(parse_url(url), StoreClock(clock, ticks), timeout)
        try:
            self._db.bind(Sealer(self._find_key(key)))
        except BaseException:
            self._db.close()
            raise
        self._lease = _as_timedelta(lease)
        lease_us = self._lease // timedelta(microseconds=1)
        limits = Limits(ask_limit, max_pending, max_pending_per_session)
        self._requests = Requests(self._db, digest, _as_timedelta(default_ttl), limits)
        self._grants = Grants(self._db, digest)
        self._answers = Answers(self._requests, self._grants, self._record)
        self._claims = Claims(self._requests, lease_us)
        self._required = RequiredCalls(self._claims)
        self._levels = Levels(self._db)
        self._overview = Overview(self._requests)

    @property
    def url(self) -> str:
        """Where the store is, without a password."""
        return self._db.url.render_as_string(hide_password=True)

    @property
    def lasting(self) -> bool:
        """Whether the store outlives this process, so that another one can find what it keeps."""
        return not self._db.memory

    @property
    def lease(self) -> timedelta:
        """How long a claim lasts unless it is renewed, for those who can't see whether its process
        lives.
        """
        return self._lease

    def now(self) -> datetime:
        """Return the store's time, by which everything expires."""
        with self._db.read() as (_, now_us):
            return from_us(now_us)

    def close(self) -> None:
        """Store what could not be stored before, within a limit, and close every connection.

        A later operation opens one again."""
        self.outbox.flush(CLOSE_SECONDS)
        self._db.close()

    def accept_clock(self) -> timedelta:
        """Believe this machine's clock, which is ahead of the store for a good reason, and give by
        how much.

        For a machine that was paused, or whose clock was wrong before: what expired meanwhile ends
        now. In PostgreSQL it is the server's clock that counts, and there is nothing to accept.
        """
        return timedelta(microseconds=self._db.accept_clock())

    def levels(self) -> StoreLevels:
        """Return what waits and what was answered, as the metrics have it.

        Raises:
            ApprovalStoreError: the store can't be read.
        """
        return self._levels.read()

    def _record(self, stored: StoredCall, answer: ApprovalAnswer) -> None:
        self.recorder.record(stored.request, answer, stored.context)

    # --- evidence ---------------------------------------------------------------------------------

    def verify_chain(self, *, anchor: tuple[int, str] | None = None) -> ChainReport:
        """Check the whole evidence log, and every row against it."""
        with self._db.snapshot() as connection:
            return evidence.verify(connection, self._db.sealer, anchor, from_start=self.lasting)

    def log_entries(self, after: int = 0, *, limit: int = 1000) -> list[LogEntry]:
        """Return entries of the evidence log in order."""
        with self._db.read() as (connection, _):
            entries = evidence.read_entries(connection, after)
            return [entry for _, entry in zip(range(limit), entries, strict=False)]

    def position(self) -> int:
        """Return the number of the last log entry: it changes whenever anything in the
        store does.
        """
        with self._db.read() as (connection, _):
            return evidence.last_entry(connection)[0]

    # --- key --------------------------------------------------------------------------------------

    def _find_key(self, key: str | bytes | None) -> bytes:
        if key is None:
            key = os.environ.get(Env.APPROVALS_KEY) or None
        if key is not None:
            return parse_key(key)
        if self._db.memory:
            return os.urandom(32)
        if not self._db.sqlite:
            raise ConfigurationError(
                f"a shared approval store needs a key: set {Env.APPROVALS_KEY}"
            )
        self._key_file = Path(f"{self._db.url.database}.key")
        return load_or_create_key_file(self._key_file, self._db.key_id())

    def rotate_key(self, new_key: str | bytes | None = None) -> None:
        """Seal the whole store under another key; processes that have the old one are refused from
        then on.

        Args:
            new_key: 32 bytes, or their base64 or hexadecimal text. Where the key lies in the file
                beside a SQLite store it may be left out for a new one, and the file is replaced.

        Raises:
            ConfigurationError: no usable key.
            ApprovalStoreError: the store failed, or it was edited; it keeps its key.
        """
        if new_key is None and self._key_file is None:
            raise ConfigurationError(
                "this store's key is not in a file beside it, so the new one has to be given"
            )
        text = (
            generate_key()
            if new_key is None
            else base64.b64encode(parse_key(new_key)).decode("ascii")
        )
        if self._key_file is None:
            self._db.rotate(Sealer(parse_key(text)))
            return
        with replacing_key_file(self._key_file, text):
            self._db.rotate(Sealer(parse_key(text)))

    # --- operations of the repositories -----------------------------------------------------------

    create = _of("_requests", Requests.create)
    get = _of("_requests", Requests.get)
    by_invocation = _of("_requests", Requests.by_invocation)
    stored_call = _of("_requests", Requests.stored_call)
    list = _of("_requests", Requests.list)
    summaries = _of("_overview", Overview.summaries)
    listed = _of("_overview", Overview.listed)
    counts = _of("_requests", Requests.counts)
    expire_due = _of("_requests", Requests.expire_due)
    unreported_expiries = _of("_requests", Requests.unreported_expiries)
    report_expiry = _of("_requests", Requests.report_expiry)
    answer = _of("_answers", Answers.answer)
    cancel = _of("_answers", Answers.cancel)
    claim = _of("_claims", Claims.claim)
    finish = _of("_claims", Claims.finish)
    extend = _of("_claims", Claims.extend)
    release = _of("_claims", Claims.release)
    recover = _of("_claims", Claims.recover)
    find_grant = _of("_grants", Grants.find_grant)
    use_grant = _of("_grants", Grants.use_grant)
    list_grants = _of("_grants", Grants.list_grants)
    revoke = _of("_grants", Grants.revoke)
    keep_required = _of("_required", RequiredCalls.keep)
    required = _of("_required", RequiredCalls.get)
    take_required = _of("_required", RequiredCalls.take)
    list_required = _of("_required", RequiredCalls.list)
    required_ids = _of("_required", RequiredCalls.ids)

    acreate = _in_thread(create)
    aget = _in_thread(get)
    aby_invocation = _in_thread(by_invocation)
    astored_call = _in_thread(stored_call)
    aanswer = _in_thread(answer)
    acancel = _in_thread(cancel)
    afinish = _in_thread(finish)
    aextend = _in_thread(extend)
    arelease = _in_thread(release)
    arecover = _in_thread(recover)

    async def aclaim(self, ref: str, **bindings: Any) -> Claim:
        """As ``claim``; when the task is canceled while it commits, the claim is given back."""
        task = asyncio.ensure_future(asyncio.to_thread(self.claim, ref, **bindings))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # a task of its own, so that a second cancellation does not keep the claim
            releasing = asyncio.ensure_future(self._give_back(task))
            _RELEASING.add(releasing)
            releasing.add_done_callback(_RELEASING.discard)
            await asyncio.shield(releasing)
            raise

    async def _give_back(self, claiming: asyncio.Future[Claim]) -> None:
        with contextlib.suppress(ApprovalError):
            await asyncio.to_thread(self._release_unused, await claiming)

    def _release_unused(self, claim: Claim) -> None:
        try:
            self.release(claim)
        except ApprovalStoreError:
            self.outbox.keep(
                "an approval that was not used", functools.partial(self.release, claim)
            )


def _as_timedelta(value: timedelta | float) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=value)
