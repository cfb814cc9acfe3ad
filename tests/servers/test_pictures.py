"""What a person sees: a denied call on the trace store's page, decisions and an alert on
Prometheus's, the terminal.

``AGENTTOOL_WRITE_PICTURES=1`` writes the pictures to docs/images instead of a temporary folder.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import seeded
import servers_run
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult
from rich.console import Console
from world_of_servers import World

import chromium
import servers
from agenttool_otel.cli.rendering import render_summary, render_tree
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import why
from agenttool_otel.names import Attr

pytestmark = [pytest.mark.slow, pytest.mark.servers, pytest.mark.browser]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of headless Chromium that can reach this machine only."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        made = browser.new_page(viewport={"width": 1400, "height": 900})
        made.route(
            "**/*",
            lambda route: (
                route.continue_() if "//127.0.0.1:" in route.request.url else route.abort()
            ),
        )
        yield made
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get("AGENTTOOL_WRITE_PICTURES"):
        written = Path(__file__).resolve().parents[2] / "docs" / "images"
        written.mkdir(parents=True, exist_ok=True)
        return written
    return tmp_path_factory.mktemp("pictures")


def picture(place: Any, path: Path, **options: Any) -> None:
    """Take a screenshot that holds more than one colour."""
    place.screenshot(path=str(path), **options)
    from PIL import Image

    with Image.open(path) as image:
        assert len(image.convert("RGB").getcolors(1 << 24) or []) > 50


def until_stored(url: str, trace_id: str) -> None:
    """Wait until Phoenix knows a trace: it stores after it has answered, and its page looks for a
    trace once only.
    """
    deadline = time.monotonic() + 60
    with httpx.Client(trust_env=False, timeout=10) as client:
        while True:
            answer = client.get(
                f"{url}/v1/projects/default/spans", params={"trace_id": trace_id, "limit": 1}
            )
            if any(
                span["context"]["trace_id"] == trace_id
                for span in answer.raise_for_status().json()["data"]
            ):
                return
            assert time.monotonic() < deadline, "the trace was exported and never stored"
            time.sleep(0.2)


def test_prometheus_shows_decisions_by_behaviour(world: World, page: Any, folder: Path) -> None:
    query = (
        "sum by (agenttool_permission_behavior) (rate(agenttool_permission_decisions_total[10s]))"
    )
    page.goto(
        f"{world.stack.prometheus}/classic/graph?g0.range_input=2m&g0.expr={quote(query)}&g0.tab=0"
    )
    page.get_by_text('agenttool_permission_behavior="deny"').first.wait_for(timeout=20_000)
    page.wait_for_timeout(500)
    picture(page, folder / "ops-prometheus-decisions.png")


def test_prometheus_shows_the_firing_alerts(world: World, page: Any, folder: Path) -> None:
    world.count_failures()
    deadline = time.monotonic() + 60
    while True:
        page.goto(f"{world.stack.prometheus}/classic/alerts")
        shown = page.inner_text("body")
        if (
            "AgentToolFailedClosed (2 active)" in shown
            or "AgentToolFailedClosed (1 active)" in shown
        ):
            break
        assert time.monotonic() < deadline, shown
        time.sleep(1)
    page.get_by_text("AgentToolFailedClosed").first.click()
    page.wait_for_timeout(700)
    assert "firing" in page.inner_text("body").lower()
    # from the first alert on: above it stands where the rule file lies on this machine
    top = page.get_by_text("AgentToolFailedClosed").first.bounding_box()["y"] - 12
    picture(
        page,
        folder / "ops-alert-firing.png",
        clip={"x": 0, "y": top, "width": 1400, "height": 880 - top},
    )


def test_the_terminal_shows_calls_and_tells_a_denials_story(
    world: World, page: Any, folder: Path
) -> None:
    denied = next(call for call in world.run.planned if call.kind == "denied")
    views = [SpanView.from_sdk(span) for span in world.run.spans.get_finished_spans()]
    views = [view for view in views if view.is_tool_call]
    kinds = {call.invocation_id: call.kind for call in world.run.planned}
    chosen, seen = [], set()
    for view in views:
        kind = kinds[view.get(Attr.INVOCATION_ID)]
        if kind not in seen and kind in {
            "allowed",
            "denied",
            "pending",
            "approved",
            "large",
            "redacted",
        }:
            seen.add(kind)
            chosen.append(view)
    console = Console(
        record=True, width=140, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print("$ agenttool trace run.json", style="bold", highlight=False)
    console.print(render_tree(chosen))
    console.print(render_summary(chosen))
    story = next(view for view in views if view.get(Attr.INVOCATION_ID) == denied.invocation_id)
    console.print(
        f"\n$ agenttool trace run.json --why {denied.invocation_id}", style="bold", highlight=False
    )
    console.print(why(story), markup=False, highlight=False)
    page.set_content(
        "<body style='margin:0;background:#fff'><div style='padding:16px;display:inline-block'>"
        + console.export_html(
            inline_styles=True, code_format="<pre style='font:14px/1.3 monospace'>{code}</pre>"
        )
        + "</div></body>"
    )
    shown = page.inner_text("body")
    assert "The policy (engine embedded" in shown
    assert "did not run" in shown
    picture(page.locator("div").first, folder / "ops-terminal.png")


@pytest.mark.timeout(300)
def test_the_trace_stores_page_shows_a_denied_call(
    world: World, page: Any, folder: Path, tmp_path: Path
) -> None:
    try:
        servers.path("phoenix")
    except servers.ServerUnavailable as reason:
        pytest.skip(f"{reason}; python tools/servers.py build phoenix")
    denied = next(call for call in world.run.planned if call.kind == "denied")
    spans = world.run.spans.get_finished_spans()
    span = next(
        item
        for item in spans
        if (item.attributes or {})[Attr.INVOCATION_ID] == denied.invocation_id
    )
    with servers_run.phoenix(tmp_path) as url:
        exporter = OTLPSpanExporter(f"{url}/v1/traces")
        assert exporter.export(spans) is SpanExportResult.SUCCESS
        trace_id = f"{span.context.trace_id:032x}"
        until_stored(url, trace_id)
        page.goto(f"{url}/redirects/traces/{trace_id}")
        page.get_by_role("tab", name="Attributes").first.click(timeout=90_000)
        page.get_by_text("agenttool.permission.rule").first.wait_for(timeout=30_000)
        text = page.inner_text("body")
        for shown in (
            "execute_tool read_file", "Error", "permission_denied", "deny", "not_executed", seeded.SENSITIVE,
            denied.session,
        ):  # fmt: skip
            assert shown in text
        picture(page, folder / "ops-trace-denied.png")
        page.get_by_role("tab", name="Events").first.click()
        page.get_by_text("tool.permission.decided").first.click()
        page.get_by_text("the path is a sensitive place").first.wait_for(timeout=30_000)
        picture(page, folder / "ops-trace-events.png")
