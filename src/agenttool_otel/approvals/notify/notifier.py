"""Looks at a store and sends what is due. What fails here never touches a request."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agenttool_otel.approvals.notify.bodies import body_of, summary_body
from agenttool_otel.approvals.notify.notices import Notice, NoticeKind, concerns, due, end_of
from agenttool_otel.approvals.notify.signatures import Signer
from agenttool_otel.approvals.notify.targets import Format, Plan, Target
from agenttool_otel.approvals.selecting import View
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.errors import AgentToolError, ConfigurationError
from agenttool_otel.values.files import replace_file

_logger = logging.getLogger("agenttool_otel.approvals.notify")

MAX_CARDS: Final = 10
"""How many cards of one look a chat gets; one card more counts the others."""

TIMEOUT_SECONDS: Final = 5.0
"""How long one message may take."""

_FIRST_PAUSE_SECONDS: Final = 5.0
_MAX_PAUSE_SECONDS: Final = 300.0
# the message itself is refused, now and later; anything else may be put right
_NEVER: Final = frozenset({400, 413, 422})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A message goes where it was sent to, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


@dataclass
class _Place:
    """A target, and since when it fails."""

    target: Target
    failures: int = 0
    again_at: float = 0.0


@dataclass
class Notifier:
    """Sends the notices of one store.

    Attributes:
        store: the store.
        plan: the targets, and the page that notices link to.
        state: the file of what was sent; one process at a time has it.
        signer: signs what goes out; ``None``: unsigned.
        tickets: makes the tickets of answers; ``None``: none are taken.
        ticks: gives seconds that only grow; for tests.
    """

    store: ApprovalStore
    plan: Plan
    state: Path
    signer: Signer | None = None
    tickets: Signer | None = None
    ticks: Callable[[], float] = time.monotonic
    # what was sent: by request, by target, the marks
    _sent: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    _asked: dict[str, ApprovalRequest] = field(default_factory=dict)
    _written: str = ""

    def __post_init__(self) -> None:
        self._places = [_Place(target) for target in self.plan.targets]
        self._sent = _read_state(self.state)

    def look(self) -> int:
        """Send what is due now, and return how many messages arrived.

        Raises:
            ApprovalStoreError: the store can't be read.
        """
        now = self.store.now()
        open_ids = [row.request_id for row in self.store.summaries(View.OPEN)]
        fresh = [each for each in open_ids if each not in self._asked]
        for request in self.store.listed(fresh):
            self._asked[request.request_id] = request
        still_open = set(open_ids)
        closed = self.store.listed([each for each in self._sent if each not in still_open])
        self._asked = {each: self._asked[each] for each in open_ids if each in self._asked}
        try:
            return sum(self._send_all(place, closed, now) for place in self._places)
        finally:
            self._forget(still_open | {request.request_id for request in closed}, still_open)
            self._write()

    def run(self, interval: float, stopped: Callable[[float], bool]) -> None:
        """Look again and again; a store that can't be read is looked at later.

        Args:
            interval: seconds between two looks.
            stopped: waits so many seconds, and returns whether to stop.
        """
        while True:
            try:
                self.look()
            except (AgentToolError, OSError) as error:
                _logger.warning("notices could not be sent: %s", type(error).__name__)
            if stopped(interval):
                return

    def _send_all(self, place: _Place, closed: list[ApprovalRequest], now: datetime) -> int:
        if self.ticks() < place.again_at:
            return 0
        notices = list(self._due(place.target, closed, now))
        single = notices
        if place.target.format is not Format.CLOUDEVENTS and len(notices) > MAX_CARDS:
            single = notices[:MAX_CARDS]
        arrived = 0
        for notice in single:
            if not self._send(place, [notice], now):
                return arrived
            arrived += 1
        if rest := notices[len(single) :]:
            arrived += self._send(place, rest, now)
        return arrived

    def _due(
        self, target: Target, closed: list[ApprovalRequest], now: datetime
    ) -> Iterator[Notice]:
        for request in closed:
            if self._marks(request.request_id, target) and target.ends:
                yield end_of(request)
        for request in self._asked.values():
            if not concerns(request, target):
                continue
            notice = due(request, target, self._marks(request.request_id, target), now)
            if notice is not None:
                yield notice

    def _marks(self, request_id: str, target: Target) -> list[str]:
        return self._sent.get(request_id, {}).get(target.name, [])

    def _send(self, place: _Place, notices: list[Notice], now: datetime) -> bool:
        """Send one message for some notices; return whether the target is done with them."""
        target = place.target
        message_id = _message_id(target, notices)
        if len(notices) == 1:
            [notice] = notices
            ticket = ""
            if self.tickets is not None and notice.kind in _OPEN_KINDS:
                ticket = self.tickets.ticket(notice.request)
            kind, body = body_of(target.format, notice, message_id, self.plan.page, now, ticket)
        else:
            kind, body = summary_body(target.format, notices, self.plan.page)
        headers = {"Content-Type": kind}
        if self.signer is not None:
            headers |= self.signer.headers(message_id, body)
        if not _post(target, headers, body):
            place.failures += 1
            pause = _FIRST_PAUSE_SECONDS * 2 ** min(place.failures - 1, 10)
            place.again_at = self.ticks() + min(pause, _MAX_PAUSE_SECONDS)
            return False
        place.failures, place.again_at = 0, 0.0
        for notice in notices:
            marks = self._sent.setdefault(notice.request.request_id, {})
            if notice.kind in _OPEN_KINDS:
                marks.setdefault(target.name, []).append(notice.mark)
            else:
                marks.pop(target.name, None)
        return True

    def _forget(self, found: set[str], still_open: set[str]) -> None:
        """Drop what is not in the store any more, and what ended if all who want to know do."""
        names = {target.name for target in self.plan.targets if target.ends}
        for request_id, marks in list(self._sent.items()):
            is_wanted = request_id in still_open or names & marks.keys()
            if request_id not in found or not is_wanted:
                del self._sent[request_id]

    def _write(self) -> None:
        text = json.dumps(self._sent)
        if text != self._written:
            replace_file(self.state, text.encode())
            self._written = text


_OPEN_KINDS: Final = frozenset(
    {NoticeKind.ASKED, NoticeKind.REMINDER, NoticeKind.ESCALATED, NoticeKind.EXPIRING}
)


def _message_id(target: Target, notices: list[Notice]) -> str:
    """Return an id that is equal for what is sent again, for example after a lost reply."""
    named = sorted(f"{notice.request.request_id} {notice.mark}" for notice in notices)
    text = "\n".join([target.name, *named])
    return f"msg_{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _post(target: Target, headers: dict[str, str], body: bytes) -> bool:
    """Send one message; return whether it arrived, or never will."""
    request = urllib.request.Request(target.url, body, headers, method="POST")  # noqa: S310
    try:
        with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as response:
            response.read(1 << 16)
        return True
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
        # never the address: in a chat it is a credential
        _logger.warning("target %s answered %d", target.name, status)
        return status in _NEVER
    except (OSError, http.client.HTTPException) as error:
        _logger.warning("target %s was not reached: %s", target.name, type(error).__name__)
        return False


def _read_state(path: Path) -> dict[str, dict[str, list[str]]]:
    try:
        stored = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"what was sent can't be read from {path.name}: {type(error).__name__}"
        ) from None
    if not isinstance(stored, dict):
        raise ConfigurationError(f"{path.name} is no file of what was sent")
    return stored


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold a file of what was sent; two processes would send everything twice.

    Args:
        state: the file.

    Raises:
        ConfigurationError: another process has it.
    """
    import fcntl

    lock = os.open(f"{state}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                f"another process sends notices from {state.name} already"
            ) from None
        yield
    finally:
        with suppress(OSError):
            os.close(lock)
