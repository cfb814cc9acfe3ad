"""Looks at a store and sends what is due. What fails here never touches a request."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from agenttool_otel.approvals.notify.bodies import body_of, summary_body
from agenttool_otel.approvals.notify.notices import Notice, NoticeKind, concerns, due, end_of
from agenttool_otel.approvals.notify.signatures import Signer
from agenttool_otel.approvals.notify.targets import Format, Plan, Target
from agenttool_otel.approvals.selecting import View
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.files import replace_file
from agenttool_otel.values.posting import post

_logger = logging.getLogger("agenttool_otel.approvals.notify")

MAX_CARDS: Final = 10
"""How many cards of one look a chat gets; one card more counts the others."""

TIMEOUT_SECONDS: Final = 5.0
"""How long one look waits for its targets, all together, and how long one message may take.

A target that takes longer, for example since it sends a byte at a time, holds up itself alone: it
gets no other message until that one is over.
"""

BATCH_SECONDS: Final = 60.0
"""After this time a target begins no further message of one look; the next look has the rest."""

_FIRST_PAUSE_SECONDS: Final = 5.0
_MAX_PAUSE_SECONDS: Final = 300.0
_NOT_TAKEN: Final = 300  # a redirect is not followed
# the message itself is refused, now and later; anything else may be put right
_NEVER: Final = frozenset({400, 413, 422})


class _Message(NamedTuple):
    """A message for some notices."""

    message_id: str
    notices: list[Notice]
    kind: str  # its content type
    body: bytes


class _Batch:
    """The messages of one look for one target, sent in a thread of their own."""

    def __init__(self, target: Target, messages: list[_Message], signer: Signer | None) -> None:
        self._target = target
        self._messages = messages
        self._signer = signer
        self._arrived: SimpleQueue[_Message] = SimpleQueue()
        self.has_failed = False
        self.thread = threading.Thread(
            target=self._run, name=f"agenttool-notices-{target.name}", daemon=True
        )
        self.thread.start()

    def arrived(self) -> Iterator[_Message]:
        """Yield each message that arrived since the last call."""
        while not self._arrived.empty():
            yield self._arrived.get()

    def _run(self) -> None:
        try:
            self._send()
        except Exception as error:
            self.has_failed = True
            _log_failure(self._target, error)

    def _send(self) -> None:
        ends_at = time.monotonic() + BATCH_SECONDS
        for message in self._messages:
            headers = {"Content-Type": message.kind}
            if self._signer is not None:
                headers |= self._signer.headers(message.message_id, message.body)
            if not _post(self._target, headers, message.body):
                self.has_failed = True
                return
            self._arrived.put(message)
            if time.monotonic() > ends_at:
                return


@dataclass
class _Place:
    """A target, what is on its way to it, and since when it fails."""

    target: Target
    batch: _Batch | None = None
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

    def look(self, seconds: float = TIMEOUT_SECONDS) -> int:
        """Send what is due now, and return how many messages arrived.

        A target that fails, or takes longer, keeps nothing from the others.

        Args:
            seconds: how long it may take; what arrives later is counted by the next look.

        Raises:
            ApprovalStoreError: the store can't be read.
            OSError: what was sent can't be written down.
        """
        arrived = self._collect()
        now = self.store.now()
        open_ids = [row.request_id for row in self.store.summaries(View.OPEN)]
        fresh = [each for each in open_ids if each not in self._asked]
        for request in self.store.listed(fresh):
            self._asked[request.request_id] = request
        still_open = set(open_ids)
        closed = self.store.listed([each for each in self._sent if each not in still_open])
        self._asked = {each: self._asked[each] for each in open_ids if each in self._asked}
        try:
            begun = [place for place in self._places if self._begin(place, closed, now)]
            _wait_for(begun, seconds)
            return arrived + sum(self._collect_from(place) for place in begun)
        finally:
            self._forget(still_open | {request.request_id for request in closed}, still_open)
            self._write()

    def run(self, interval: float, stopped: Callable[[float], bool]) -> None:
        """Look again and again; what fails, such as a store that can't be read, is tried later.

        Args:
            interval: seconds between two looks.
            stopped: waits so many seconds, and returns whether to stop.
        """
        while True:
            try:
                self.look()
            except Exception as error:
                _logger.warning("notices could not be sent: %s", type(error).__name__)
            if stopped(interval):
                return

    def _begin(self, place: _Place, closed: list[ApprovalRequest], now: datetime) -> bool:
        """Begin to send what is due for a target; return whether anything is."""
        if place.batch is not None or self.ticks() < place.again_at:
            return False
        try:
            messages = self._messages(place.target, closed, now)
        except Exception as error:
            _log_failure(place.target, error)
            self._pause(place)
            return False
        if messages:
            place.batch = _Batch(place.target, messages, self.signer)
        return bool(messages)

    def _messages(
        self, target: Target, closed: list[ApprovalRequest], now: datetime
    ) -> list[_Message]:
        notices = list(self._due(target, closed, now))
        single = notices
        if target.format is not Format.CLOUDEVENTS and len(notices) > MAX_CARDS:
            single = notices[:MAX_CARDS]
        messages = [self._message(target, [notice], now) for notice in single]
        if rest := notices[len(single) :]:
            messages.append(self._message(target, rest, now))
        return messages

    def _message(self, target: Target, notices: list[Notice], now: datetime) -> _Message:
        message_id = _message_id(target, notices)
        if len(notices) > 1:
            kind, body = summary_body(target.format, notices, self.plan.page)
            return _Message(message_id, notices, kind, body)
        [notice] = notices
        ticket = ""
        if self.tickets is not None and notice.kind in _OPEN_KINDS:
            ticket = self.tickets.ticket(notice.request)
        kind, body = body_of(target.format, notice, message_id, self.plan.page, now, ticket)
        return _Message(message_id, notices, kind, body)

    def _collect(self) -> int:
        """Note what arrived since the last look; return how many messages did."""
        return sum(self._collect_from(place) for place in self._places)

    def _collect_from(self, place: _Place) -> int:
        batch = place.batch
        if batch is None:
            return 0
        # before its messages are read: what arrives meanwhile is read once more
        is_over = not batch.thread.is_alive()
        arrived = list(batch.arrived())
        for message in arrived:
            place.failures = 0
            self._mark(place.target, message.notices)
        if is_over:
            place.batch = None
            if batch.has_failed:
                self._pause(place)
        return len(arrived)

    def _pause(self, place: _Place) -> None:
        place.failures += 1
        pause = _FIRST_PAUSE_SECONDS * 2 ** min(place.failures - 1, 10)
        place.again_at = self.ticks() + min(pause, _MAX_PAUSE_SECONDS)

    def _mark(self, target: Target, notices: list[Notice]) -> None:
        for notice in notices:
            marks = self._sent.setdefault(notice.request.request_id, {})
            if notice.kind in _OPEN_KINDS:
                marks.setdefault(target.name, []).append(notice.mark)
            else:
                marks.pop(target.name, None)

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


def _wait_for(places: list[_Place], seconds: float) -> None:
    """Wait until nothing is on its way any more, or so many seconds."""
    ends_at = time.monotonic() + seconds
    for place in places:
        if place.batch is None:
            continue
        place.batch.thread.join(max(ends_at - time.monotonic(), 0))
        if place.batch.thread.is_alive():
            _logger.warning("target %s takes long", place.target.name)


def _log_failure(target: Target, error: Exception) -> None:
    # neither the error's text nor the address, which is a credential in a chat
    _logger.warning("target %s got no notice: %s", target.name, type(error).__name__)


def _post(target: Target, headers: dict[str, str], body: bytes) -> bool:
    """Send one message; return whether it arrived, or never will."""
    try:
        status = post(target.url, body, headers, seconds=TIMEOUT_SECONDS)
    # ValueError: a host that IDNA refuses
    except (OSError, ValueError, http.client.HTTPException) as error:
        _logger.warning("target %s was not reached: %s", target.name, type(error).__name__)
        return False
    if status < _NOT_TAKEN:
        return True
    # never the address: in a chat it is a credential
    _logger.warning("target %s answered %d", target.name, status)
    return status in _NEVER


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
