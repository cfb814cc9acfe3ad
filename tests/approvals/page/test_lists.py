"""The page's lists for thousands: what is opened and shown for one page, and how one finds a request."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from approval_helpers import FakeClock, bindings, no, stored_request, yes
from page_client import Client

from agenttool_otel.approvals.selecting import PAGE_ROWS, Selection, View
from agenttool_otel.approvals.store.requests import Requests
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.approvals.web.server import ApprovalsServer

MANY = 200


def ask(
    store: ApprovalStore, number: int = 0, *, risk: str = "low", **values: object
) -> ApprovalRequest:
    arguments = {"path": f"notes-{number}.txt"}
    about = {"session_id": f"s-{number}", "profile": {"risk_level": risk}, "ttl": 900}
    return stored_request(store, arguments, **{**about, **values})


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApprovalStore]:
    """A store with many requests, of which no test of this module answers one."""
    store = ApprovalStore(tmp_path_factory.mktemp("filled") / "approvals.db")
    for number in range(MANY):
        ask(store, number, tool_name=f"tool_{number % 4}", ttl=900 + number)
    ask(store, MANY, risk="critical", tool_name="wire_money", rule_ref="acme.money.wire", ttl=5000)
    yield store
    store.close()


@pytest.fixture(scope="module")
def many(filled: ApprovalStore) -> Iterator[Client]:
    with ApprovalsServer(filled, answered_by="user:ada", roles=("operator",)) as server:
        client = Client(server)
        client.sign_in()
        yield client


@pytest.fixture
def client(store: ApprovalStore) -> Iterator[Client]:
    with ApprovalsServer(store, answered_by="user:ada", roles=("operator",)) as server:
        client = Client(server)
        client.sign_in()
        yield client


def shown(client: Client, path: str) -> list[str]:
    """Return the ids of the requests that a page lists, in order."""
    status, _, body = client("GET", path)
    assert status == 200
    return re.findall(r'id="open-(appr_\w+)"', body)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the requests that are decrypted."""
    ids: list[str] = []
    open_row = Requests.shown

    def counted(self: Requests, row: object, now_us: int) -> ApprovalRequest:
        ids.append(row.request_id)  # type: ignore[attr-defined]
        return open_row(self, row, now_us)

    monkeypatch.setattr(Requests, "shown", counted)
    return ids


def test_a_page_shows_and_opens_only_its_own_rows(many: Client, opened: list[str]) -> None:
    first = shown(many, "/")
    opened.clear()
    second = shown(many, "/?page=2")
    assert len(first) == len(second) == PAGE_ROWS
    assert set(first).isdisjoint(second)
    assert sorted(opened) == sorted(second)


def test_what_was_asked_later_is_opened_once(
    store: ApprovalStore, client: Client, opened: list[str]
) -> None:
    shown(client, "/")
    opened.clear()
    asked = ask(store)
    for _ in range(2):
        assert shown(client, "/") == [asked.request_id]
    # once for its summary, and once for each page that shows it
    assert opened == [asked.request_id] * 3


def test_pages_hold_every_request_once(many: Client) -> None:
    pages = -(-(MANY + 1) // PAGE_ROWS)
    listed = [each for page in range(1, pages + 1) for each in shown(many, f"/?page={page}")]
    assert len(listed) == len(set(listed)) == MANY + 1


@pytest.mark.parametrize("page", ["0", "-1", "999", "x", "%C2%B2", "9" * 40])
def test_a_page_that_is_not_there_shows_another(many: Client, page: str) -> None:
    assert shown(many, f"/?page={page}")


@pytest.mark.parametrize(
    "query",
    ["q=wire+money", "q=WIRE_MONEY", "risk=critical", "rule=acme.money.wire", "tool=wire_money"],
)
def test_one_of_many_is_found(many: Client, filled: ApprovalStore, query: str) -> None:
    [found] = shown(many, f"/?{query}")
    assert filled.get(found).tool_name == "wire_money"


@pytest.mark.parametrize("query", ["q=notes-7.txt", "q=s-7%0A+notes-7.txt"])
def test_arguments_and_ids_are_searched(many: Client, filled: ApprovalStore, query: str) -> None:
    assert [filled.get(each).session_id for each in shown(many, f"/?{query}")] == ["s-7"]


def test_the_highest_risk_is_first_where_wanted(many: Client, filled: ApprovalStore) -> None:
    assert filled.get(shown(many, "/?order=risk")[0]).tool_name == "wire_money"
    assert filled.get(shown(many, "/?order=newest")[0]).tool_name == "wire_money"
    assert filled.get(shown(many, "/")[0]).session_id == "s-0"


def test_groups_have_their_number_and_lead_to_theirs(many: Client) -> None:
    _, _, body = many("GET", "/?group=tool")
    assert body.count(f"<td>{MANY // 4}</td>") == 4
    assert '<a href="/?tool=tool_3">tool_3</a>' in body
    assert len(shown(many, "/?tool=tool_3&page=2")) == MANY // 4 - PAGE_ROWS


def test_a_word_that_is_no_choice_chooses_nothing(many: Client) -> None:
    assert len(shown(many, "/?risk=hihg&order=x&view=y&older=z&group=%00")) == PAGE_ROWS
    assert shown(many, "/?q=nothing-has-this-word") == []


def test_only_what_waits_longer_is_shown(tmp_path: Path) -> None:
    clock = FakeClock()
    store = ApprovalStore(tmp_path / "old.db", clock=clock, ticks=clock.ticks)
    old = ask(store, 1, ttl=9000)
    clock.move(3700)
    new = ask(store, 2, ttl=9000)
    with ApprovalsServer(store, answered_by="user:ada") as server:
        client = Client(server)
        client.sign_in()
        assert shown(client, "/?older=1h") == [old.request_id]
        assert set(shown(client, "/")) == {old.request_id, new.request_id}
        _, _, body = client("GET", "/?older=1h")
        assert "asked 1 h 01 min ago" in body
    store.close()


def test_what_is_to_be_run_comes_before_what_is_open(store: ApprovalStore, client: Client) -> None:
    to_run, _ = ask(store, 1), ask(store, 2)
    store.answer(to_run.request_id, yes())
    _, _, body = client("GET", "/")
    assert body.index(f"/requests/{to_run.request_id}") < body.index('id="open-')
    assert shown(client, "/?view=to_run") == [to_run.request_id]
    store.claim(to_run.request_id, **bindings(to_run))
    assert shown(client, "/?view=to_run") == []
    assert to_run.request_id not in client("GET", "/")[2]


def test_the_history_has_what_was_answered_last_in_front(
    store: ApprovalStore, client: Client
) -> None:
    approved, rejected, _ = (ask(store, number) for number in range(3))
    store.answer(rejected.request_id, no())
    store.answer(approved.request_id, yes())
    assert shown(client, "/?view=history") == [approved.request_id, rejected.request_id]
    assert shown(client, "/?view=history&q=notes-1") == [rejected.request_id]
    assert "user:ada" in client("GET", "/?view=history")[2]


def test_a_request_shows_what_runs_before_its_questions(
    store: ApprovalStore, client: Client
) -> None:
    asked = ask(store, 1, question="path is a file of another team.")
    _, _, body = client("GET", f"/requests/{asked.request_id}")
    order = ["arguments-shown", "path is a file of", 'id="approve"', 'id="facts"', 'id="details"']
    places = [body.index(text) for text in order]
    assert places == sorted(places)


def test_after_an_answer_the_next_of_the_same_filter_is_offered(
    store: ApprovalStore, client: Client
) -> None:
    first, other, second = (
        ask(store, 1, risk="high"),
        ask(store, 2, risk="low"),
        ask(store, 3, risk="high"),
    )
    path = f"/requests/{first.request_id}"
    form = {"csrf": client.csrf(first.request_id)}
    _, headers, _ = client("POST", f"{path}/approve?risk=high", form)
    assert headers["location"] == f"{path}?risk=high&done=approved"
    _, _, body = client("GET", headers["location"])
    assert "Approved. The call runs once" in body
    assert f'id="next" href="/requests/{second.request_id}?risk=high"' in body
    assert "(1 open)" in body
    assert other.request_id not in body


def test_what_a_person_agreed_to_is_not_offered_again(store: ApprovalStore, client: Client) -> None:
    several, other = ask(store, 1, approvals_needed=2), ask(store, 2, ttl=9000)
    store.answer(several.request_id, yes())
    path = f"/requests/{other.request_id}"
    _, headers, _ = client("POST", f"{path}/approve", {"csrf": client.csrf(other.request_id)})
    assert "Nothing else waits here." in client("GET", headers["location"])[2]


def test_a_link_can_not_say_that_a_request_was_approved(
    store: ApprovalStore, client: Client
) -> None:
    asked = ask(store)
    for word in ("approved", "edited", "rejected", "agreed", "x"):
        assert "Done." not in client("GET", f"/requests/{asked.request_id}?done={word}")[2]


def test_an_address_holds_only_what_was_chosen() -> None:
    chosen = Selection.from_query(
        {"q": " a b ", "view": "history", "page": "3", "done": "approved"}
    )
    assert chosen == Selection(view=View.HISTORY, q="a b", page=3)
    assert chosen.address(page=1) == "/?view=history&q=a+b"
    assert Selection().address() == "/"


def test_a_row_that_was_edited_does_not_hide_the_others(
    store: ApprovalStore, client: Client
) -> None:
    from sqlalchemy import update

    from agenttool_otel.approvals.store.schema import requests

    broken, good = ask(store, 1), ask(store, 2)
    with store._db._connection() as connection, connection.begin():
        changed = update(requests).where(requests.c.request_id == broken.request_id)
        connection.execute(changed.values(tool_id="x"))
    assert set(shown(client, "/")) == {broken.request_id, good.request_id}
    assert "can&#39;t be opened" in client("GET", "/")[2]


@pytest.mark.slow
def test_two_thousand_are_listed_in_half_a_second(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.db")
    for number in range(2_000):
        stored_request(store, session_id=f"s-{number}", tool_name=f"tool_{number % 40}")
    with ApprovalsServer(store, answered_by="user:ada") as server:
        client = Client(server)
        client.sign_in()
        times = []
        for path in ("/", "/?q=tool_7", "/?group=tool", "/?page=80"):
            started = time.process_time()
            assert client("GET", path)[0] == 200
            times.append(time.process_time() - started)
    store.close()
    # the first page opens all of them once
    assert times[0] < 2
    assert max(times[1:]) < 0.5
