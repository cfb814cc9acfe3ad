"""Records out: every event, and the records of a call that ended, to a file, an HTTP endpoint or a
function.

A call only puts what happened into a bounded queue. A thread of the sink builds the records,
numbers and writes them, so a sink that is slow, full or broken costs records and never time or a
result; what is lost leaves a gap in the numbers. Nothing here holds the content of arguments or
results unless content is captured in events.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import shutil
import stat
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

try:
    import fcntl
except ImportError:  # Windows, where an open file can't be renamed
    fcntl = None  # type: ignore[assignment]

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EVENT_SOURCE, SCHEMA_VERSION
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.losses import Losses
from agenttool_otel.telemetry.words import standard_words
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.forks import around_fork, new_condition, new_rlock
from agenttool_otel.values.ids import new_id
from agenttool_otel.values.known_file import FileReplaced, KnownFile

Build = Callable[[], Iterable[tuple[str, JsonObject]]]
"""Makes records, each with the standard's name of its object (``tool_event``, ``tool_invocation``
...).
"""

EVENT_OBJECT: Final = "tool_event"
DEFAULT_QUEUE: Final = 10_000
DEFAULT_BACKUPS: Final = 5
_BATCH_ENTRIES: Final = 256
TAKEN, WRITTEN = 0, 1
"""Places of a producer's numbers: entries that it was given, and the last line that was written."""

_LINE_BYTES: Final = 160  # what a line has beside its record
_logger = logging.getLogger("agenttool_otel.telemetry")
EXIT_LIMIT_S: Final = 2.0
_NOT_TAKEN: Final = 300  # statuses from here on: a redirect is not followed
_LOOK_S: Final = 0.05
_LOOKS: Final = 20


class _Entry(NamedTuple):
    """A record on its way to a line."""

    kind: str  # empty where only the tool that it names is to be declared
    record: JsonObject
    lost_before: int  # entries between the one before it and this one that were lost


class Declaration(NamedTuple):
    """A tool's own records: its declaration, interface and profiles."""

    digest: str  # of what is declared
    build: Build


class Sink:
    """Takes records; the base of all sinks.

    What reaches ``write`` are lines: ``producer`` (this sink in this process), ``sequence`` (1, 2,
    3 ... of that producer; a gap means loss), ``time``, ``object`` (the standard's name of the
    record's kind) and ``record``. A tool's own records come before the first line that names it.

    Args:
        queue: most entries that wait; what comes while it is full is lost.

    Attributes:
        lost: entries and lines that were lost so far.
    """

    def __init__(self, *, queue: int = DEFAULT_QUEUE) -> None:
        if queue < 1:
            raise ConfigurationError("the queue of a sink needs room for at least one entry")
        self._size = queue
        self._tools: dict[str, Declaration] = {}
        self._watchers: weakref.WeakSet[Losses] = weakref.WeakSet()
        self._closed = False
        self.lost = 0
        self._reset()
        _sinks.add(self)

    def _reset(self) -> None:
        """Begin anew: at first, and in a forked child, which has its parent's queue but not its
        thread.
        """
        self._lock = new_rlock()  # that of the condition, held without a call of Python
        self._changed = new_condition(self._lock)
        # a number stands for so many entries that were lost there
        self._queue: deque[Build | int] = deque()
        self._busy = False
        self._asleep = False  # the thread has to be woken
        self._hurried = False  # somebody waits for what is in the queue, or it is half full
        self._calm_until = 0  # with fewer entries than this another one takes its place alone
        self._thread: threading.Thread | None = None
        self._producer = new_id("producer")
        self._sequence = 0
        self._numbers = [0, 0]  # entries taken, and lines written
        self._lost_before = 0
        # digests of the tools that what was written so far declares, by id
        self._declared: dict[str, str] = {}

    def watched_by(self, losses: Losses) -> None:
        """Let losses be counted there, too."""
        self._watchers.add(losses)

    def declare(self, tool_id: str, declaration: Declaration) -> None:
        """Keep how to declare a tool, for the first record that names it.

        Args:
            tool_id: the tool.
            declaration: its records; they are written again where they change, and at the beginning
              of another file.
        """
        self._tools[tool_id] = declaration

    def put(self, build: Build) -> None:
        """Take what makes some records; returns at once and never raises."""
        # as little as can be: code that is in no cache costs a call a microsecond a line
        with self._lock:
            self._numbers[TAKEN] += 1
            if len(self._queue) < self._calm_until:
                self._queue.append(build)
                return
            if self._queued(build):
                return
        self._note(BufferError("queue"), 1)

    def _queued(self, build: Build) -> bool:
        """Put what needs more than a place in the queue, and return whether it had one; the lock
        is held.
        """
        if not self._closed and len(self._queue) < self._size:
            self._queue.append(build)
            if self._thread is None:
                self._start()
            half_full = len(self._queue) * 2 >= self._size
            if self._asleep or (half_full and not self._hurried):
                self._hurry()
            self._settle_calm()
            return True
        # full: a number takes the place of what is lost here, so that the gap in the sequence
        # is where the loss was
        if self._queue and isinstance(self._queue[-1], int):
            self._queue[-1] += 1
        else:
            self._queue.append(1)
        return False

    def _settle_calm(self) -> None:
        """Settle up to how many entries nothing but their place in the queue is needed; the lock
        is held.
        """
        is_up = self._thread is not None and not self._asleep and not self._closed
        most = self._size if self._hurried else (self._size - 1) // 2
        self._calm_until = most if is_up else 0

    def flush(self, timeout_s: float = EXIT_LIMIT_S) -> bool:
        """Wait until everything is written, and return whether it is."""
        # a callback that flushes its own sink would wait for itself
        if threading.current_thread() is self._thread:
            return False
        with self._changed:
            if self._queue:
                self._hurry()
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout_s)

    def close(self, timeout_s: float = EXIT_LIMIT_S) -> None:
        """Write what waits, within a limit, and end; whatever comes later is lost."""
        self.flush(timeout_s)
        with self._changed:
            self._closed = True
            self._settle_calm()
            self._changed.notify_all()

    def write(self, lines: list[JsonObject]) -> None:
        """Write some lines; called in the sink's own thread, and may take its time and raise."""
        raise NotImplementedError

    def release(self) -> None:
        """Give back what is open; called in the sink's own thread at its end."""

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="agenttool-sink", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is ending
            self._thread = None

    def _hurry(self) -> None:
        """Wake the thread; the lock is held."""
        self._asleep = False
        self._hurried = True
        self._settle_calm()
        self._changed.notify_all()

    def _wait(self) -> None:
        """Wait in the sink's own thread until there are entries, or it is closed; the lock is held.

        To wake a thread takes 20 us of a call's time. So for a second after an entry the thread
        looks by itself, and no call wakes it.
        """
        for _ in range(_LOOKS):
            self._changed.wait_for(self._has_haste, _LOOK_S)
            if self._queue or self._closed:
                return
        self._asleep = True
        self._settle_calm()
        self._changed.wait_for(lambda: self._queue or self._closed)
        self._asleep = False
        self._settle_calm()

    def _has_haste(self) -> bool:
        return self._hurried or self._closed or len(self._queue) >= _BATCH_ENTRIES

    def _next_batch(self) -> list[Build | int]:
        """Return the next entries, none where the sink is closed."""
        with self._changed:
            self._busy = False
            if not self._queue:
                self._hurried = False
                self._settle_calm()
                self._changed.notify_all()  # who waits for an empty queue
            self._wait()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_ENTRIES))]
            self._busy = bool(batch)
            return batch

    def _run(self) -> None:
        while batch := self._next_batch():
            entries = self.entries_of(batch)
            try:
                self.deliver(entries)
            except LinesLost as lost:
                self._note(lost.cause, lost.count)
            except BaseException as error:  # a callback may raise anything
                self._note(error, len(entries))
        with suppress(Exception):
            self.release()

    def deliver(self, entries: list[_Entry]) -> None:
        """Number entries and write them; called in the sink's own thread."""
        self.write(self.lines_of(entries))

    def lines_of(self, entries: list[_Entry]) -> list[JsonObject]:
        """Return entries as numbered lines, with the records of each tool before the first line
        that names it.
        """
        lines: list[JsonObject] = []
        now = rfc3339(time.time_ns())
        for entry in self._with_declarations(entries):
            self._sequence += entry.lost_before + 1
            line = {"producer": self._producer, "sequence": self._sequence, "time": now}
            lines.append({**line, "object": entry.kind, "record": entry.record})
        return lines

    def deliver_to(self, file: _AppendedFile, entries: list[_Entry]) -> None:
        """Number entries and write them to a file, and declare every tool again where they begin
        another one.
        """
        with file.locked(entries) as is_another:
            if is_another:
                self._declared.clear()
            self.write(self.lines_of(entries))

    def entries_of(self, batch: list[Build | int]) -> list[_Entry]:
        """Build records, in the sink's own thread; a number stands for so many that were lost."""
        entries: list[_Entry] = []
        lost = self._lost_before
        for build in batch:
            if isinstance(build, int):
                lost += build
                continue
            made = self._built(build)
            if made is None:
                lost += 1
                continue
            for kind, record in made:
                entries.append(_Entry(kind, record, lost))
                lost = 0
        self._lost_before = lost
        return entries

    def _built(self, build: Build) -> list[tuple[str, JsonObject]] | None:
        try:
            with _building:
                return list(build())
        except BaseException as error:
            self._note(error, 1)
            return None

    def _with_declarations(self, entries: list[_Entry]) -> Iterator[_Entry]:
        lost = 0
        for entry in entries:
            lost += entry.lost_before
            for kind, record in self._due_declaration(entry.record.get("tool_id")):
                yield _Entry(kind, record, lost)
                lost = 0
            if entry.kind:
                yield entry._replace(lost_before=lost)
                lost = 0
        # for the first entry of the next batch
        self._lost_before += lost

    def _due_declaration(self, tool_id: Any) -> list[tuple[str, JsonObject]]:
        """Return the records of a tool that what was written so far does not declare."""
        declaration = self._tools.get(tool_id) if isinstance(tool_id, str) else None
        if declaration is None or self._declared.get(tool_id) == declaration.digest:
            return []
        self._declared[tool_id] = declaration.digest
        return self._built(declaration.build) or []

    def _note(self, error: BaseException, count: int) -> None:
        self.lost += count
        loss = error
        if not isinstance(error, Exception):
            # a callback's KeyboardInterrupt: ``note`` would raise it in the sink's own thread
            loss = RuntimeError(type(error).__name__)
        for losses in list(self._watchers):
            losses.note("sink", loss, count)


class CallbackSink(Sink):
    """Hands each line to a function, in the sink's own thread.

    Args:
        function: takes one line; what it raises costs that line.
        queue: most entries that wait.
    """

    def __init__(
        self, function: Callable[[JsonObject], object], *, queue: int = DEFAULT_QUEUE
    ) -> None:
        super().__init__(queue=queue)
        self._function = function

    def write(self, lines: list[JsonObject]) -> None:
        """Hand over each line."""
        for line in lines:
            try:
                self._function(line)
            except BaseException as error:
                self._note(error, 1)


class JsonlSink(Sink):
    """Appends each line to a file as JSON; ``agenttool records`` reads it.

    The file is made for its owner alone (mode 0600). Several processes may append to one file.

    Args:
        path: the file; its directory has to be there.
        queue: most entries that wait.
        max_bytes: size at which the file becomes ``<path>.1``, that one ``<path>.2`` and so on, and
          a new one begins.
        backups: how many of these older files are kept; what was in the oldest one is gone then.
        compress: compress the older files with xz: ``<path>.1.xz`` and so on.

    Raises:
        ConfigurationError: there is no such directory, or no backup is to be kept.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        queue: int = DEFAULT_QUEUE,
        max_bytes: int | None = None,
        backups: int = DEFAULT_BACKUPS,
        compress: bool = False,
    ) -> None:
        self._file = _AppendedFile(path, max_bytes, backups, compress)
        super().__init__(queue=queue)

    def deliver(self, entries: list[_Entry]) -> None:
        """Append the entries at once, behind a new file's declarations where they begin one."""
        self.deliver_to(self._file, entries)

    def write(self, lines: list[JsonObject]) -> None:
        """Append the lines; the file is locked."""
        self.append([encoded_line(line) for line in lines])

    def append(self, lines: list[bytes]) -> None:
        """Append encoded lines; the file is locked.

        Args:
            lines: each without its end.
        """
        self._file.append(lines)

    def release(self) -> None:
        """Close the file."""
        self._file.close()


class CloudEventsSink(Sink):
    """Sends each line as a CloudEvent 1.0 in structured mode, over HTTP or to a file with one event
    a line.

    Its ``type`` is the event class of the standard, or the name of the record's object; ``data`` is
    the record; ``sequence`` and ``producer`` are extension attributes.

    Args:
        target: ``http://`` or ``https://`` URL that takes POST requests, or a file. No redirect is
          followed, and a URL of this machine is reached without a proxy.
        queue: most entries that wait.
        headers: further HTTP headers.
        timeout_s: seconds for one request, until its answer's last header.
        max_bytes: as in JsonlSink.
        backups: as in JsonlSink.

    Raises:
        ConfigurationError: the extra ``cloudevents`` is not installed, or there is no such
          directory.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        queue: int = DEFAULT_QUEUE,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 5.0,
        max_bytes: int | None = None,
        backups: int = DEFAULT_BACKUPS,
    ) -> None:
        # not in the thread: a forked child would wait for an import that was under way there
        from agenttool_otel.values.posting import post

        try:
            from cloudevents.core.bindings.http import to_structured_event
            from cloudevents.core.v1.event import CloudEvent
        except ImportError as error:
            raise ConfigurationError(
                "CloudEvents need the extra agenttool-otel[cloudevents]"
            ) from error
        self._event, self._structured, self._send = CloudEvent, to_structured_event, post
        is_url = isinstance(target, str) and urlsplit(target).scheme in ("http", "https")
        self._url = str(target) if is_url else None
        self._file = None if is_url else _AppendedFile(target, max_bytes, backups)
        self._headers = dict(headers or {})
        self._timeout_s = timeout_s
        super().__init__(queue=queue)

    def deliver(self, entries: list[_Entry]) -> None:
        """Send or append the entries."""
        if self._file is None:
            super().deliver(entries)
        else:
            self.deliver_to(self._file, entries)

    def write(self, lines: list[JsonObject]) -> None:
        """Send or append the events; a file is locked."""
        messages = [
            self._structured(self._event(_cloud_attributes(line), line["record"])) for line in lines
        ]
        if self._file is not None:
            self._file.append([bytes(message.body) for message in messages])
            return
        for message in messages:
            try:
                self._post(message.headers, message.body)
            except Exception as error:
                self._note(error, 1)

    def _post(self, headers: Mapping[str, str], body: bytes) -> None:
        whole = {**self._headers, **headers}
        status = self._send(str(self._url), body, whole, seconds=self._timeout_s)
        if status >= _NOT_TAKEN:
            raise ConnectionError(f"the endpoint answered {status}")

    def release(self) -> None:
        """Close the file, if it is one."""
        if self._file is not None:
            self._file.close()


def _cloud_attributes(line: JsonObject) -> dict[str, Any]:
    record = line["record"]
    subject = record.get("tool_id") or record.get("invocation_id")
    return {
        "id": f"{line['producer']}.{line['sequence']}",
        "source": record.get("source", EVENT_SOURCE),
        "type": record.get("event_type", line["object"]),
        "time": datetime.fromisoformat(record.get("time", line["time"])),
        "datacontenttype": "application/json",
        "producer": line["producer"],
        # CloudEvents' extension "sequence" is a text; ``sequencetype`` gives its order
        "sequence": str(line["sequence"]),
        "sequencetype": "Integer",
        **({"subject": subject} if subject else {}),
    }


def encoded_line(line: JsonObject) -> bytes:
    """Return a line as it stands in a file, without its end.

    Args:
        line: the line.
    """
    return json.dumps(line, separators=(",", ":")).encode()


class LinesLost(Exception):
    """Some lines of a batch were not written."""

    def __init__(self, count: int, cause: OSError) -> None:
        super().__init__()
        self.count = count
        self.cause = cause


class _AppendedFile:
    """A file that grows by whole lines, also where several processes append to it and rotate it.

    A writer locks the file, and looks then whether its name still leads to it: another process
    may have rotated or removed it meanwhile.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int | None,
        backups: int,
        compress: bool = False,
    ) -> None:
        self._path = Path(path)
        if not self._path.parent.is_dir():
            raise ConfigurationError("the directory of a sink's file does not exist")
        if backups < 1:
            raise ConfigurationError("a sink that rotates its file keeps at least one older one")
        self._max_bytes = max_bytes
        self._backups = backups
        self._suffix = ".xz" if compress else ""  # of older files
        self._descriptor: int | None = None
        self._owner = 0
        self._is_torn = False  # the last write ended before its lines did
        self._written: tuple[int, int] | None = None  # the file of the last write
        self._end = 0  # where that ended

    @contextmanager
    def locked(self, entries: list[_Entry]) -> Iterator[bool]:
        """Hold the file while entries are appended; give whether it is another one than that of the
        last write.
        """
        descriptor = self._locked(self._size_of(entries))
        try:
            status = os.fstat(descriptor)
            is_another = self._written != (status.st_dev, status.st_ino)
            self._written = (status.st_dev, status.st_ino)
            if is_another or status.st_size != self._end:
                self._end_torn_line()
            yield is_another
            self._end = os.fstat(descriptor).st_size
        finally:
            _unlock(descriptor)

    def _size_of(self, entries: list[_Entry]) -> int:
        """Return about how many bytes entries take as lines."""
        if self._max_bytes is None:
            return 0
        return sum(len(encoded_line(entry.record)) + _LINE_BYTES for entry in entries)

    def append(self, lines: list[bytes]) -> None:
        """Write lines to the file that is locked."""
        descriptor = self._open()
        data = b"".join(line + b"\n" for line in lines)
        # after a full disk: the torn line is ended, so that it costs no whole one behind it
        view = memoryview(b"\n" + data if self._is_torn else data)
        try:
            while view:
                view = view[os.write(descriptor, view) :]
                self._is_torn = bool(view)
        except OSError as error:
            written = data[: max(len(data) - len(view), 0)]
            self._cut(descriptor, len(written) - written.rfind(b"\n") - 1)
            raise LinesLost(len(lines) - written.count(b"\n"), error) from error

    def _end_torn_line(self) -> None:
        """Let the next line begin behind what another process was killed in; the lock is held."""
        with suppress(OSError), self._path.open("rb") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                self._is_torn = file.read(1) != b"\n"

    def _cut(self, descriptor: int, count: int) -> None:
        """Take the torn end of a line away, or another process would write on behind it; the lock
        is held.
        """
        if fcntl is None or not count or not self._is_torn:
            return
        with suppress(OSError):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - count)
            self._is_torn = False

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _locked(self, coming: int) -> int:
        """Return the file that the name leads to, open and locked, with room for what comes."""
        if self._owner != os.getpid():  # a child opens the file anew
            self.close()
            self._is_torn = False
        while True:
            descriptor = self._open()
            try:
                _lock(descriptor)
                if not self._is_current(descriptor):
                    self.close()
                    continue
                if not self._is_full(descriptor, coming):
                    return descriptor
                self._rotate()
            except BaseException:
                self.close()  # which unlocks it
                raise
            self.close()

    def _open(self) -> int:
        if self._descriptor is None:
            flags = (
                os.O_WRONLY
                | os.O_APPEND
                | os.O_CREAT
                | getattr(os, "O_CLOEXEC", 0)
                # a link in the file's place would have the records written to a file of its choice
                | getattr(os, "O_NOFOLLOW", 0)
            )
            self._descriptor = os.open(self._path, flags, 0o600)
            self._owner = os.getpid()
        return self._descriptor

    def _is_current(self, descriptor: int) -> bool:
        try:
            KnownFile(self._path, descriptor).check()
        except FileReplaced:
            return False
        return True

    def _is_full(self, descriptor: int, coming: int) -> bool:
        if self._max_bytes is None:
            return False
        status = os.fstat(descriptor)
        return (
            stat.S_ISREG(status.st_mode)
            and bool(status.st_size)
            and status.st_size + coming > self._max_bytes
        )

    def _rotate(self) -> None:
        """Move each file to the next number, the oldest one out; the lock of the newest is held."""
        for number in range(self._backups - 1, 0, -1):
            with suppress(FileNotFoundError):
                self._older(number).replace(self._older(number + 1))
        newest = Path(f"{self._path}.1")
        self._path.replace(newest)
        if self._suffix:
            _compress(newest, self._older(1))

    def _older(self, number: int) -> Path:
        return Path(f"{self._path}.{number}{self._suffix}")


def _compress(path: Path, target: Path) -> None:
    """Replace a file by a compressed one; until that is whole, the first one stays."""
    import lzma  # where files are compressed alone; one record repeats most of those far before it

    partial = Path(f"{target}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with (
        path.open("rb") as source,
        lzma.open(os.fdopen(descriptor, "wb"), "wb", preset=2) as compressed,
    ):
        shutil.copyfileobj(source, compressed)
    partial.replace(target)
    path.unlink()


def _lock(descriptor: int) -> None:
    if fcntl is not None:
        # a file system that has no locks: what one process writes is still whole
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _unlock(descriptor: int) -> None:
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def open_sinks(target: str) -> tuple[Sink, ...]:
    """Open the sink that a setting names, ``file:PATH`` or a URL; one that can't be used is
    logged, and left out.
    """
    if not target:
        return ()
    try:
        path = target.removeprefix("file:")
        return (JsonlSink(path) if path != target else CloudEventsSink(target),)
    except ConfigurationError as error:
        _logger.warning("no records are written: %s", error)
        return ()


def event_record(
    name: str,
    attributes: Mapping[str, Any],
    invocation_id: str,
    tool_id: str,
    at_ns: int,
    trace_refs: list[JsonObject],
    event_id: str | None = None,
) -> JsonObject:
    """Return a tool_event as plain JSON data."""
    record: JsonObject = {
        "schema_version": SCHEMA_VERSION,
        "event_id": event_id or new_id("evt"),
        "event_type": name,
        "source": EVENT_SOURCE,
        "time": rfc3339(at_ns),
        "data": to_json_value({**standard_words(attributes), **attributes}),
        "trace_refs": trace_refs,
    }
    if tool_id:
        record["subject"] = record["tool_id"] = tool_id
    if invocation_id:
        record["invocation_id"] = invocation_id
    return record


def rfc3339(at_ns: int) -> str:
    """Return a time in nanoseconds since the epoch as RFC 3339 in UTC."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat().replace("+00:00", "Z")


_sinks: weakref.WeakSet[Sink] = weakref.WeakSet()
# held by a sink's thread while it builds records, and by a thread that forks
_building = new_rlock()


def _close_all() -> None:
    """Give all sinks together a limited time to write what waits when the interpreter ends."""
    ends = time.monotonic() + EXIT_LIMIT_S
    for sink in list(_sinks):
        sink.close(max(0.0, ends - time.monotonic()))


def _before_fork() -> None:
    """Wait until no record is being built: what that holds (pydantic builds models then) stays held
    in the child.
    """
    _building.acquire(timeout=EXIT_LIMIT_S)


def _after_fork() -> None:
    with suppress(RuntimeError):  # it was not had in time
        _building.release()


def _reset_all() -> None:
    for sink in list(_sinks):
        sink._reset()


atexit.register(_close_all)
around_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_reset_all)
