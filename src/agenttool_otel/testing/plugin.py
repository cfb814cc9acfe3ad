"""A pytest plugin: the records of every test that has a sink are checked when it ends.

Off until it is asked for, by ``-p agenttool_otel.testing.plugin`` or by ``pytest_plugins`` in a
``conftest.py``: as an entry point it would import this package into every run of pytest beside
which it is installed, before coverage is measured.

A test whose records are broken on purpose says why::

    @pytest.mark.unchecked_records("the sink loses every second line")

The setting ``agenttool_known_violations`` lists parts of violations that are known, and fail no
test: ``order.progress: percent`` or a whole message.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from typing import Any, Final

import pytest

from agenttool_otel.conformance.invariants import find_violations
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import Sink
from agenttool_otel.testing.records import KeptRecords, is_ignored

MARKER: Final = "unchecked_records"
KNOWN: Final = "agenttool_known_violations"
_FLUSH_S: Final = 10.0
_MOST_LINES: Final = 20  # of a message


class _Watch:
    """The lines of every sink, while it is alive, and which sinks a test used."""

    def __init__(self) -> None:
        self.lines: weakref.WeakKeyDictionary[Sink, list[JsonObject]] = weakref.WeakKeyDictionary()
        self.used: dict[int, Sink] = {}  # by identity: sinks of this test, kept until it ends

    def note_use(self, sink: Sink) -> None:
        self.used[id(sink)] = sink

    def note_lines(self, sink: Sink, lines: list[JsonObject]) -> None:
        self.lines.setdefault(sink, []).extend(lines)

    def take_used(self) -> list[list[JsonObject]]:
        """Return the lines of each sink that was used; those of earlier tests stand before."""
        used, self.used = self.used, {}
        return [self._lines_of(sink) for sink in used.values()]

    def _lines_of(self, sink: Sink) -> list[JsonObject]:
        if isinstance(sink, KeptRecords):
            return sink.lines
        sink.flush(_FLUSH_S)
        return self.lines.get(sink, [])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting."""
    parser.addini(KNOWN, "parts of violations that are known", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker, and watch sinks."""
    config.addinivalue_line("markers", f"{MARKER}(reason): its records are broken on purpose")
    watch = _Watch()
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    put, number = Sink.put, Sink.lines_of

    def watched_put(sink: Sink, entry: Any) -> None:
        watch.note_use(sink)
        put(sink, entry)

    def watched_lines(sink: Sink, entries: Any) -> list[JsonObject]:
        lines = number(sink, entries)
        watch.note_lines(sink, lines)
        return lines

    def watched_kept(sink: KeptRecords, entry: Any) -> None:
        watch.note_use(sink)
        keep(sink, entry)

    keep = KeptRecords.put
    patch.setattr(Sink, "put", watched_put)
    patch.setattr(Sink, "lines_of", watched_lines)
    patch.setattr(KeptRecords, "put", watched_kept)
    config.pluginmanager.register(_Checks(watch, config.getini(KNOWN)), "agenttool-checks")


class _Checks:
    """Checks what a test's sinks got, once its body passed."""

    def __init__(self, watch: _Watch, known: list[str]) -> None:
        self._watch = watch
        self._known = known

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Run a test, and fail it where its records break a rule."""
        self._watch.used.clear()
        try:
            outcome = yield
            if item.get_closest_marker(MARKER) is None:
                self._check()
        finally:
            self._watch.used.clear()
        return outcome

    def _check(self) -> None:
        found: list[str] = []
        for lines in self._watch.take_used():
            for violation in find_violations(lines):
                if not is_ignored(violation, self._known):
                    found.append(str(violation))
        if found:
            shown = found[:_MOST_LINES]
            pytest.fail("\n".join(["the records of this test:", *shown]), pytrace=False)
