"""Actions in a real Chromium as governed tools; the sites are answered by the test."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_driver import BrowserDriver, Page

import chromium
from agenttool_otel import ApprovalAnswer, Governor
from agenttool_otel.integrations.browser import PageAction, browser_tools
from agenttool_otel.testing import Capture, StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS

async_api = pytest.importorskip("playwright.async_api")
SHOP, CART, BANK = "https://shop.example/", "https://shop.example/cart", "https://bank.example/"
PAY = "https://shop.example/pay"
ENTER = "iframe >> internal:control=enter-frame >> #pin"
SITES = {
    SHOP: '<h1>Shop</h1><input id=name oninput="seen.textContent=value"><p id=seen></p>'
    "<select id=size><option>s<option>m</select><a href=/cart>Cart</a>",
    CART: "<h1>Cart</h1><button onclick=\"document.title='bought'\">Buy</button>",
    BANK: "<h1>Bank</h1>",
    PAY: f"<h1>Pay</h1><div style='width: 300px'><iframe src={BANK}pin></iframe></div>",
    f"{BANK}pin": "<input id=pin autofocus onclick=\"value='clicked'\""
    " style='position: fixed; inset: 0; width: 100%; height: 100%'>",
}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def browser(runner: asyncio.Runner) -> Iterator[Any]:
    playwright = runner.run(async_api.async_playwright().start())
    browser = runner.run(chromium.launch(playwright))
    yield browser
    runner.run(browser.close())
    runner.run(playwright.stop())


@pytest.fixture
def page(runner: asyncio.Runner, browser: Any) -> Iterator[Any]:
    page = runner.run(browser.new_page())
    runner.run(page.route("**/*", _answer))
    runner.run(page.goto(SHOP))
    yield page
    runner.run(page.close())


async def _answer(route: Any) -> None:
    body = SITES.get(route.request.url)
    if body is None:
        await route.fulfill(status=404)
    else:
        await route.fulfill(body=body, content_type="text/html")


class Tools:
    """The tools of a page, called one after the other."""

    def __init__(self, runner: asyncio.Runner, captured: Capture, page: Any) -> None:
        self._runner = runner
        self.governor: Governor = captured.governor
        self.tools = browser_tools(page, governor=self.governor)

    def call(self, name: str, **arguments: Any) -> Any:
        return self._runner.run(self.tools[name].ainvoke(arguments))

    def resume(self, ref: str) -> Any:
        return self._runner.run(self.governor.aresume(ref))


def in_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(BrowserDriver())


def test_an_action_shows_the_policy_the_pages_url() -> None:
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        tools = browser_tools(Page(BANK), governor=captured.governor)
        asyncio.run(tools["click"].ainvoke({"selector": "#pay"}))
    (fact,) = engine.documents[0]["facts"]["urls"]
    assert fact["host"] == "bank.example"
    assert engine.documents[0]["input"] == {"selector": "#pay", "url": BANK}


def test_a_page_that_changed_since_is_left_alone() -> None:
    done: list[Any] = []

    async def run(page: Page, arguments: dict[str, Any]) -> None:
        done.append(arguments)

    action = PageAction("pay", "Pay.", {}, run)
    page = Page(SHOP)
    with capture(policy=StaticEngine("ask")) as captured:
        tool = browser_tools(page, governor=captured.governor, actions=[action])["pay"]
        asked = asyncio.run(tool.ainvoke({}))
        approve(captured.governor, asked.invocation_id)
        page.url = BANK
        result = asyncio.run(captured.governor.aresume(asked.invocation_id))
    assert result.status == "failed"
    assert done == []


def test_a_url_of_the_models_own_is_not_believed() -> None:
    done: list[Any] = []

    async def run(page: Page, arguments: dict[str, Any]) -> None:
        done.append(arguments)

    action = PageAction("pay", "Pay.", {}, run)
    with capture(policy=StaticEngine("allow")) as captured:
        tool = browser_tools(Page(BANK), governor=captured.governor, actions=[action])["pay"]
        assert asyncio.run(tool.ainvoke({"url": SHOP})).status == "failed"
        assert asyncio.run(tool.ainvoke({})).status == "succeeded"
    assert done == [{}]


def approve(governor: Governor, ref: str) -> None:
    store = governor.approvals.store
    yes = ApprovalAnswer(approved=True, answered_by="user:kit")
    store.answer(store.stored_call(ref).request.request_id, yes)


def test_an_action_states_what_it_does() -> None:
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        tools = browser_tools(Page(), governor=captured.governor)
        for name in ("read_page", "click"):
            arguments = {"selector": "a"} if name == "click" else {}
            asyncio.run(tools[name].ainvoke(arguments))
    assert [document["tool"]["read_only"] for document in engine.documents] == [True, False]
    assert {document["tool"]["kind"] for document in engine.documents} == {"browser_action"}


# --- in Chromium --------------------------------------------------------------------------------------


@in_browser
def test_actions_change_the_page(runner: asyncio.Runner, page: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tools = Tools(runner, captured, page)
        assert tools.call("fill", selector="#name", text="Ada").status == "succeeded"
        assert tools.call("select_option", selector="#size", value="m").status == "succeeded"
        assert tools.call("press_key", selector="#name", key="End").status == "succeeded"
        text = tools.call("read_page").value
    assert "Ada" in text
    assert 'option "m" [selected]' in text


@in_browser
def test_a_link_is_decided_where_it_led(runner: asyncio.Runner, page: Any) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tools = Tools(runner, captured, page)
        assert tools.call("click", selector="text=Cart").value == {"url": CART}
        tools.call("read_page")
    urls = [document["input"]["url"] for document in engine.documents]
    assert urls == [SHOP, CART]


@in_browser
@pytest.mark.parametrize("behavior", ["deny", "ask"])
def test_nothing_happens_before_the_decision(
    behavior: str, runner: asyncio.Runner, page: Any
) -> None:
    with capture(policy=StaticEngine(behavior)) as captured:
        tools = Tools(runner, captured, page)
        assert tools.call("navigate", url=BANK).status != "succeeded"
        assert tools.call("click", selector="text=Cart").status != "succeeded"
    assert page.url == SHOP


@in_browser
def test_an_approved_click_is_done_once(runner: asyncio.Runner, page: Any) -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        runner.run(page.goto(CART))
        tools = Tools(runner, captured, page)
        ref = tools.call("click", selector="text=Buy").invocation_id
        assert runner.run(page.title()) == ""
        approve(tools.governor, ref)
        assert tools.resume(ref).status == "succeeded"
    assert runner.run(page.title()) == "bought"


@in_browser
def test_the_page_goes_and_comes_back(runner: asyncio.Runner, page: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tools = Tools(runner, captured, page)
        assert tools.call("navigate", url=BANK).value == {"url": BANK, "status": 200}
        assert tools.call("go_back").value == {"url": SHOP}


@in_browser
def test_an_element_that_is_not_there_ends_the_call(runner: asyncio.Runner, page: Any) -> None:
    page.set_default_timeout(200)
    with capture(policy=StaticEngine("allow")) as captured:
        result = Tools(runner, captured, page).call("click", selector="#none")
    assert result.status == "timed_out"


@in_browser
def test_nothing_is_done_in_a_frame(runner: asyncio.Runner, page: Any) -> None:
    runner.run(page.goto(PAY))
    pin = page.frames[1].locator("#pin")
    tree = runner.run(page.locator("body").aria_snapshot(mode="ai"))
    (ref,) = re.findall(r"textbox.* \[ref=(\w+)\]", tree)  # it names elements of frames, too
    with capture(policy=StaticEngine("allow")) as captured:
        tools = Tools(runner, captured, page)
        for selector in (ENTER, f"*{ENTER}", f"aria-ref={ref}", "iframe", "div"):
            assert tools.call("click", selector=selector).status == "failed"
        assert tools.call("fill", selector=ENTER, text="1").status == "failed"
        assert tools.call("select_option", selector=ENTER, value="1").status == "failed"
        runner.run(pin.focus())
        for selector in (ENTER, "iframe", "h1"):
            assert tools.call("press_key", selector=selector, key="1").status == "failed"
        text = tools.call("read_page").value
    assert runner.run(pin.input_value()) == ""
    assert "Pay" in text
    assert "textbox" not in text


@in_browser
def test_an_element_of_a_later_page_is_left_alone(runner: asyncio.Runner, page: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = Tools(runner, captured, page).tools["click"]

        async def click() -> Any:
            clicking = asyncio.ensure_future(tool.ainvoke({"selector": "text=Buy"}))
            await asyncio.sleep(0.2)
            await page.goto(CART)
            return await clicking

        assert runner.run(click()).status == "failed"
    assert runner.run(page.title()) == ""


@in_browser
def test_the_stock_policy_denies_places_of_this_machine(runner: asyncio.Runner, page: Any) -> None:
    with capture() as captured:
        tools = Tools(runner, captured, page)
        for url in ("http://127.0.0.1:1/", "file:///etc/passwd", "chrome://settings"):
            assert tools.call("navigate", url=url).status != "succeeded"
    assert page.url == SHOP


@in_browser
def test_the_pages_example_runs(runner: asyncio.Runner, page: Any) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text("utf-8")
    section = text.split("## Browser")[1].split("\n## ")[0]
    (block,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    with capture(policy=StaticEngine("allow")) as captured:
        names = {"page": page, "governor": captured.governor}
        exec(block, names)
        assert runner.run(names["main"](page, captured.governor)) == CART
