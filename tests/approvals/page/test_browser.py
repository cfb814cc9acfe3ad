"""The approvals page in a real Chromium: sign in, approve, reject, edit, expiry, wrong token, live
updates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import stored_request, yes

import chromium
from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.web.server import ApprovalsServer
from agenttool_otel.names import ApprovalStatus as Status

pytestmark = [pytest.mark.browser, pytest.mark.slow]

sync_api = pytest.importorskip("playwright.sync_api")
IMAGES = Path(__file__).parents[3] / "docs" / "images"

DELETE = {"path": "/srv/reports/2026/quarter-3.csv", "recursive": False, "token": "real-" + "value"}
SHOWN = {**DELETE, "token": "[redacted]"}
NASTY = {"command": "echo '<script>document.title=1</script>' # \u202etxt.exe\u200b"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 960, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(30_000)  # a busy machine is slow; nothing waits so long otherwise
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    yield page
    context.close()
    assert problems == []


def ask(
    store: ApprovalStore,
    arguments: dict[str, Any],
    preview: dict[str, Any] | None = None,
    **values: Any,
) -> Any:
    return stored_request(store, arguments, arguments_preview=preview or arguments, **values)


def ask_to_delete(store: ApprovalStore, **values: Any) -> Any:
    return ask(
        store,
        DELETE,
        SHOWN,
        tool_id="local.files/delete_file",
        tool_name="delete_file",
        rule_ref="agenttool.rules.destructive.delete",
        message="Deleting files outside the workspace needs approval.",
        alternatives=[
            {
                "tool": "archive_file",
                "arguments": {"path": DELETE["path"]},
                "reason": "Can be undone for 30 days.",
            }
        ],
        suggested_updates=[
            {"type": "grant", "scope": "session", "args": "exact", "expires_in": 3600}
        ],
        **values,
    )


def ask_others(store: ApprovalStore) -> None:
    ask(
        store,
        {"to": "finance@example.com", "subject": "Quarter 3", "body": "The figures are attached."},
        tool_id="mail/send_email",
        tool_name="send_email",
        rule_ref="agenttool.rules.network.external_send",
        message="Sending to an address outside the organisation needs approval.",
        ttl=3 * 86_400,
    )
    ask(
        store,
        NASTY,
        tool_id="local.shell/run",
        tool_name="run_command",
        rule_ref="agenttool.rules.shell.unproven",
        message="This command is not proven to be read-only.",
        ttl=45,
    )


def sign_in(page: Any, server: ApprovalsServer) -> None:
    page.goto(server.sign_in_url)
    page.get_by_role("heading", name="Pending requests").wait_for()


def picture(page: Any, name: str) -> None:
    if os.environ.get("AGENTTOOL_SCREENSHOTS"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        target = IMAGES / f"{name}.png"
        page.screenshot(path=str(target), full_page=True)
        from PIL import Image

        with Image.open(target) as image:
            small = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(target, optimize=True)


def test_the_link_signs_in_and_leaves_no_token_in_the_address(
    page: Any, server: ApprovalsServer
) -> None:
    sign_in(page, server)
    assert page.url == f"{server.url}/"
    [cookie] = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert server.token not in cookie["value"]
    assert page.evaluate("document.cookie") == ""


def test_a_wrong_token_shows_nothing(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    ask_to_delete(store)
    page.goto(server.url)
    page.get_by_label("Token").fill("not-the-token-at-all")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").filter(has_text="This is not the token").wait_for()
    picture(page, "approvals-wrong-token")
    assert page.context.cookies() == []
    page.goto(f"{server.url}/")
    assert page.url.endswith("/login")
    assert "delete_file" not in page.content()


def test_a_request_is_approved(page: Any, server: ApprovalsServer, store: ApprovalStore) -> None:
    ask_others(store)
    request = ask_to_delete(store)
    sign_in(page, server)
    picture(page, "approvals-list")
    page.get_by_role("link", name="delete_file").click()
    assert "real-value" not in page.content()
    assert "[redacted]" in page.locator("#arguments-shown").inner_text()
    picture(page, "approvals-request")
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("status").filter(has_text="Approved").wait_for()
    stored = store.get(request.request_id)
    assert (stored.status, stored.answered_by) == (Status.APPROVED, "user:ada")
    assert store.stored_call(request.request_id).arguments == DELETE
    assert store.list_grants() == []


def test_an_approval_is_remembered_when_asked_for(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    request = ask_to_delete(store)
    sign_in(page, server)
    page.goto(f"{server.url}/requests/{request.request_id}")
    page.get_by_role("radio", name=re.compile("this session")).check()
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("status").filter(has_text="Approved").wait_for()
    assert [grant.request_id for grant in store.list_grants()] == [request.request_id]


def test_a_request_is_rejected_with_the_keyboard_and_a_reason(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    request = ask_to_delete(store)
    sign_in(page, server)
    page.get_by_role("link", name="delete_file").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason", exact=True).focus()
    page.keyboard.type("Use archive_file & keep <it>")
    page.keyboard.press("Enter")
    page.get_by_role("status").filter(has_text="Rejected").wait_for()
    stored = store.get(request.request_id)
    assert (stored.status, stored.answer_reason) == (
        Status.REJECTED,
        "Use archive_file & keep <it>",
    )
    assert page.get_by_text("Use archive_file & keep <it>").is_visible()
    assert page.get_by_role("button", name="Approve").count() == 0


def test_arguments_are_edited_and_untouched_secrets_stay(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    request = ask_to_delete(store)
    sign_in(page, server)
    page.goto(f"{server.url}/requests/{request.request_id}")
    page.get_by_text("Edit the arguments").click()
    field = page.get_by_label("Arguments as JSON")
    field.fill('{"path": "/srv/reports/old.csv", "recursive": fals')
    page.get_by_role("button", name="Approve with these arguments").click()
    page.get_by_role("alert").filter(has_text="no JSON").wait_for()
    assert field.input_value().startswith('{"path": "/srv/reports/old.csv"')
    assert store.get(request.request_id).status is Status.PENDING
    picture(page, "approvals-edit")
    field.fill('{"path": "/srv/reports/old.csv", "recursive": false, "token": "[redacted]"}')
    page.get_by_role("button", name="Approve with these arguments").click()
    page.get_by_role("status").filter(has_text="Approved with your arguments").wait_for()
    expected = {**DELETE, "path": "/srv/reports/old.csv"}
    call = store.stored_call(request.request_id)
    assert (call.arguments, call.args_digest) == (expected, args_digest(expected))


def test_an_expired_request_can_not_be_answered(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    request = ask_to_delete(store, ttl=1.5)
    sign_in(page, server)
    page.goto(f"{server.url}/requests/{request.request_id}")
    page.get_by_text("expired", exact=True).first.wait_for()
    page.get_by_text("This request has changed").wait_for()
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("alert").filter(has_text="expired").first.wait_for()
    picture(page, "approvals-expired")
    assert store.get(request.request_id).status is Status.EXPIRED
    assert page.get_by_role("button", name="Approve").count() == 0


def test_a_list_changes_by_itself_and_keeps_the_focus(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    first = ask_to_delete(store)
    sign_in(page, server)
    link = page.locator(f"#open-{first.request_id}")
    link.focus()
    ask_others(store)
    page.get_by_role("link", name="send_email").wait_for()
    assert page.evaluate("document.activeElement.id") == f"open-{first.request_id}"
    assert "3 waiting" in page.locator("#announce").inner_text()


def test_hidden_characters_and_markup_are_shown_not_obeyed(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    request = ask(
        store, NASTY, tool_name="run_<b>command</b>", message="<img src=x onerror=alert(1)>"
    )
    sign_in(page, server)
    page.goto(f"{server.url}/requests/{request.request_id}")
    shown = page.locator("#arguments-shown").inner_text()
    assert "<script>" in shown
    assert r"\u{202e}" in shown
    assert r"\u{200b}" in shown
    assert "\u202e" not in page.content()
    assert page.locator("#arguments-shown mark").all_inner_texts() == [r"\u{202e}", r"\u{200b}"]
    assert page.locator("main script, main img, main b").count() == 0
    assert page.title() != "1"


def test_the_page_works_without_scripts_and_in_the_dark(
    browser: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    request = ask_to_delete(store)
    ask_others(store)
    context = browser.new_context(
        java_script_enabled=False, color_scheme="dark", viewport={"width": 420, "height": 900}
    )
    page = context.new_page()
    page.goto(server.url)
    page.get_by_label("Token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    picture(page, "approvals-list-dark")
    page.goto(f"{server.url}/requests/{request.request_id}")
    picture(page, "approvals-request-dark")
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("status").filter(has_text="Approved").wait_for()
    assert store.get(request.request_id).status is Status.APPROVED
    page.get_by_role("button", name="Sign out").click()
    page.goto(server.url)
    assert page.url.endswith("/login")
    context.close()


CONTRAST = """() => {
  const seen = [];
  const lum = c => {
    const [r, g, b] = c.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parse = t => (t.match(/[\\d.]+/g) || []).map(Number);
  const back = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest(".skip")) continue;
    const a = lum(parse(getComputedStyle(e).color).slice(0, 3)), b = lum(back(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) seen.push(`${e.tagName} ${e.className} ${ratio.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return seen;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_contrast_labels_and_landmarks(
    browser: Any, server: ApprovalsServer, store: ApprovalStore, scheme: str
) -> None:
    request = ask_to_delete(store)
    ask_others(store)
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    for path in ("/login", "/", f"/requests/{request.request_id}"):
        if path == "/":
            sign_in(page, server)
        page.goto(f"{server.url}{path}")
        assert page.evaluate(CONTRAST) == [], path
        for landmark in ("banner", "main", "contentinfo"):
            assert page.get_by_role(landmark).count() == 1, (path, landmark)
        assert page.get_by_role("heading", level=1).count() == 1, path
        for field in page.locator("input:not([type=hidden]), textarea").all():
            assert field.evaluate("e => e.labels.length") > 0, path
    context.close()


SMALL_TARGETS = """() => [...document.querySelectorAll("a, button, select, summary, textarea, input")]
  .filter(e => e.type !== "hidden" && e.getClientRects().length && !e.closest(".skip, .sr"))
  .map(e => e.type === "radio" ? e.closest("label") : e)
  .filter(e => e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44)
  .map(e => `${e.tagName} ${e.textContent.trim().slice(0, 30)} ${e.getBoundingClientRect().height}`)"""
SIDE_SCROLL = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApprovalsServer]:
    """A page over 2,000 open requests, of which one is to be found."""
    store = ApprovalStore(tmp_path_factory.mktemp("crowd") / "approvals.db")
    for number in range(2_000):
        arguments = {"order": f"A-{number}", "amount": number}
        ask(store, arguments, tool_name=f"refund_{number % 30}", session_id=f"s-{number}", ttl=9000)
    with ApprovalsServer(store, answered_by="user:ada", roles=("operator",)) as server:
        yield server
    store.close()


@pytest.fixture
def phone(browser: Any) -> Iterator[Any]:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    yield page
    context.close()


def test_one_of_two_thousand_is_found_in_three_actions(phone: Any, crowd: ApprovalsServer) -> None:
    sign_in(phone, crowd)
    phone.get_by_label("Search").fill("A-1234")  # 1
    phone.get_by_label("Search").press("Enter")  # 2
    phone.get_by_role("link", name="refund_4").tap()  # 3
    phone.get_by_role("heading", name="refund_4").wait_for()
    assert "A-1234" in phone.locator("#arguments-shown").inner_text()


def test_every_target_is_large_enough_for_a_thumb(phone: Any, crowd: ApprovalsServer) -> None:
    asked = ask_to_delete(crowd.page.store)
    sign_in(phone, crowd)
    for path in (
        "/",
        "/?risk=high",
        "/?group=tool",
        "/?view=history",
        "/?page=2",
        f"/requests/{asked.request_id}",
        "/nowhere",
    ):
        phone.goto(f"{crowd.url}{path}")
        assert phone.evaluate(SMALL_TARGETS) == [], path
        assert not phone.evaluate(SIDE_SCROLL), path


def test_what_runs_and_the_answer_are_near_the_top(
    phone: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    asked = ask_to_delete(store)
    sign_in(phone, server)
    phone.goto(f"{server.url}/requests/{asked.request_id}")
    tops = [
        phone.locator(f"#{name}").bounding_box()["y"] for name in ("arguments-shown", "approve")
    ]
    assert tops[0] < 844
    assert tops[1] < 2 * 844


def test_the_next_request_is_one_tap_away_from_an_answer(
    phone: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    ask_others(store)
    asked = ask_to_delete(store)
    sign_in(phone, server)
    phone.goto(f"{server.url}/requests/{asked.request_id}")
    phone.get_by_role("button", name="Approve", exact=True).tap()
    phone.get_by_role("status").filter(has_text="Approved").wait_for()
    phone.get_by_role("link", name="Next: run_command (2 open)").tap()
    phone.get_by_role("heading", name="run_command").wait_for()


def test_what_is_typed_into_the_search_outlasts_a_change(
    page: Any, server: ApprovalsServer, store: ApprovalStore
) -> None:
    ask_to_delete(store)
    sign_in(page, server)
    page.get_by_label("Search").fill("half a wo")
    ask_others(store)
    page.get_by_role("link", name="send_email").wait_for()
    assert page.get_by_label("Search").input_value() == "half a wo"
    assert page.locator("[data-count=open]").inner_text() == "3"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_of_accessibility(
    browser: Any, server: ApprovalsServer, store: ApprovalStore, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    asked, answered = ask_to_delete(store, profile={"risk_level": "high"}), ask_to_delete(store)
    ask_others(store)
    store.answer(answered.request_id, yes())
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{server.url}/login")
    faults = axe.run(page).response["violations"]
    sign_in(page, server)
    for path in (
        "/",
        "/?q=x",
        "/?group=rule&risk=high",
        "/?view=history",
        f"/requests/{asked.request_id}",
        f"/requests/{answered.request_id}?done=approved",
    ):
        page.goto(f"{server.url}{path}")
        faults += [(path, each) for each in axe.run(page).response["violations"]]
    context.close()
    assert faults == []
