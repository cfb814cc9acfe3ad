"""A call that is rejected or expires leaves its terminal span where that is done or found out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, FakeClock, a_request, yes
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

from agenttool_otel import ApprovalRequired
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.call.expire import close_call, close_expired
from agenttool_otel.cli import endings as endings_module
from agenttool_otel.cli.approvals import app
from agenttool_otel.errors import ApprovalExpired
from agenttool_otel.testing import StaticEngine, capture


def test_a_rejection_on_the_command_line_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    with capture(policy=StaticEngine("ask"), approvals=url) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: 1, name="act")()
        first = captured.span.get_span_context()
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(endings_module, "_providers", lambda: (provider, None))
    done = CliRunner().invoke(
        app, ["reject", asked.value.request_id, "--url", url, "--yes", "--reason", "no"]
    )
    assert done.exit_code == 0, done.output
    _, span = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["agenttool.invocation.id"] == asked.value.invocation_id
    assert span.attributes["error.type"] == "approval_rejected"
    assert span.links[0].context.span_id == first.span_id
    store = ApprovalStore(url)
    assert store.get(asked.value.request_id).status == "rejected"
    store.close()


def too_late(store: ApprovalStore, request_id: str) -> None:
    with pytest.raises(ApprovalExpired):
        store.answer(request_id, yes(roles=()))


READERS: dict[str, Any] = {
    "counts": lambda store, _: store.counts(),
    "list": lambda store, _: store.list(),
    "get": lambda store, request_id: store.get(request_id),
    "expire_due": lambda store, _: store.expire_due(),
    "answer": lambda store, request_id: too_late(store, request_id),
    "nobody": lambda *_: None,
}


@pytest.mark.parametrize("reader", READERS)
def test_an_expired_call_ends_once_whoever_saw_it_first(
    tmp_path: Path, clock: FakeClock, reader: str
) -> None:
    def opened() -> ApprovalStore:
        return ApprovalStore(tmp_path / "approvals.db", clock=clock, ticks=clock.ticks)

    with capture(policy=StaticEngine("ask"), approvals=opened(), approvals_ttl=60) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: 1, name="act")()
        captured.clear()
        clock.move(61)
        page = opened()
        READERS[reader](page, asked.value.request_id)
        (ended,) = close_expired(captured.governor)
        assert ended.invocation_id == asked.value.invocation_id
        assert captured.span.attributes is not None
        assert captured.span.attributes["agenttool.approval.status"] == "expired"
        assert close_expired(captured.governor) == []
        assert page.unreported_expiries() == []
        page.close()


def test_what_was_closed_by_name_is_not_closed_again(tmp_path: Path, clock: FakeClock) -> None:
    store = ApprovalStore(tmp_path / "approvals.db", clock=clock, ticks=clock.ticks)
    with capture(policy=StaticEngine("ask"), approvals=store, approvals_ttl=60) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: 1, name="act")()
        clock.move(61)
        assert close_call(captured.governor, asked.value.request_id).status == "denied"
        assert close_expired(captured.governor) == []


def test_of_many_tellers_one_tells(tmp_path: Path, clock: FakeClock) -> None:
    stores = [
        ApprovalStore(tmp_path / "approvals.db", clock=clock, ticks=clock.ticks) for _ in range(4)
    ]
    request = stores[0].create(a_request(ttl=60), ARGS)
    assert stores[0].report_expiry(request.request_id) is False  # it has not expired
    clock.move(61)
    assert {tuple(store.unreported_expiries()) for store in stores} == {(request.request_id,)}
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda store: store.report_expiry(request.request_id), stores))
    assert sorted(told) == [False, False, False, True]
    for store in stores:
        store.close()
