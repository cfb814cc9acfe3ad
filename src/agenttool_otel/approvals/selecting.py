"""Which of many requests a person looks at: views, filters, search, order, groups and pages.

A request is sealed, so a database can't filter by risk or words. What is compared is a ``Summary``,
made once of each request; the rows of one page alone are opened for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import urlencode

from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.names import ApprovalStatus, RiskLevel

_Word = TypeVar("_Word", bound=StrEnum)

PAGE_ROWS: Final = 25
"""How many requests one page shows."""

MAX_CHOICES: Final = 100
"""How many tools or rules a filter offers: those with most requests."""

_MAX_TEXT_CHARS: Final = 4_000
_MAX_SEARCH_CHARS: Final = 200


class View(StrEnum):
    """Which states a list is of."""

    OPEN = "open"
    """Waits for an answer."""
    TO_RUN = "to_run"
    """Approved, and not run yet."""
    HISTORY = "history"
    """Answered or ended, newest first."""


VIEW_STATES: Final[Mapping[View, tuple[ApprovalStatus, ...]]] = {
    View.OPEN: (ApprovalStatus.PENDING,),
    View.TO_RUN: (ApprovalStatus.APPROVED,),
    View.HISTORY: tuple(state for state in ApprovalStatus if state is not ApprovalStatus.PENDING),
}
"""The states of each view."""


class Order(StrEnum):
    """What stands first in a list of open requests."""

    EXPIRES = "expires"
    """What expires first."""
    OLDEST = "oldest"
    """What was asked first."""
    NEWEST = "newest"
    """What was asked last."""
    RISK = "risk"
    """What has the highest risk, then what expires first."""


class GroupBy(StrEnum):
    """What requests of one group have in common."""

    TOOL = "tool"
    """The tool's name."""
    RULE = "rule"
    """The rule that asks."""


class Age(NamedTuple):
    """An age that a filter offers."""

    span: timedelta  # at least so long ago
    text: str  # the same for people


AGES: Final[Mapping[str, Age]] = {
    "10m": Age(timedelta(minutes=10), "10 minutes ago or earlier"),
    "1h": Age(timedelta(hours=1), "an hour ago or earlier"),
    "6h": Age(timedelta(hours=6), "6 hours ago or earlier"),
    "1d": Age(timedelta(days=1), "a day ago or earlier"),
}
"""The ages that a filter offers, by the word in the page's address."""

ORDERS: Final[Mapping[Order, str]] = {
    Order.EXPIRES: "what expires first",
    Order.OLDEST: "the oldest",
    Order.NEWEST: "the newest",
    Order.RISK: "the highest risk",
}
"""The orders that a list offers, for people."""

RISKS: Final = tuple(reversed(RiskLevel))
"""The risks, highest first."""

_RANKS: Final = {risk.value: rank for rank, risk in enumerate(RiskLevel, start=1)}


class Summary(NamedTuple):
    """What a list needs of one request."""

    request_id: str  # the request
    tool: str  # the tool's name
    rule: str  # the rule that asked, empty where none is stated
    risk: str  # a ``RiskLevel``, empty where none is stated
    asked_us: int  # when it was asked, microseconds since 1970
    expires_us: int  # when its time is over
    text: str  # what a search looks through, in folded case
    agreed: frozenset[str]  # who agreed already, where several have to


def summary_of(request: ApprovalRequest, asked_us: int, expires_us: int) -> Summary:
    """Return what a list needs of a request.

    Args:
        request: the request; its preview has no secrets.
        asked_us: when it was asked, microseconds since 1970.
        expires_us: when its time is over.
    """
    texts = (
        request.tool_name,
        request.tool_id,
        request.request_id,
        request.invocation_id,
        request.actor_id,
        request.tenant,
        request.session_id,
        request.answered_by,
        *(request.rule_refs or [request.rule_ref]),
        request.message,
        request.question,
        json.dumps(request.arguments_preview, ensure_ascii=False),
    )
    text = "\n".join(text for text in texts if text)
    return Summary(
        request_id=request.request_id,
        tool=request.tool_name,
        rule=request.rule_ref,
        risk=str(request.profile.get("risk_level", "")),
        asked_us=asked_us,
        expires_us=expires_us,
        text=text[:_MAX_TEXT_CHARS].casefold(),
        agreed=frozenset(str(each["answered_by"]) for each in request.agreed),
    )


@dataclass(frozen=True)
class Selection:
    """What a person chose, as it is in the page's address; a word that is no choice counts as none.

    Attributes:
        view: which states.
        q: words that all have to be in a request.
        tool: only this tool, by name.
        rule: only what this rule asks.
        risk: only this risk.
        older: only what waits longer than this, a word of ``AGES``.
        order: what stands first in the view of open requests.
        group: what to count by instead of listing requests; empty: list them.
        page: the number of the page, from 1.
    """

    view: View = View.OPEN
    q: str = ""
    tool: str = ""
    rule: str = ""
    risk: str = ""
    older: str = ""
    order: Order = Order.EXPIRES
    group: str = ""
    page: int = 1

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        """Return what an address chooses.

        Args:
            query: the parameters of the address.
        """
        page = query.get("page", "1")
        return cls(
            view=_word(View, query, "view", View.OPEN),
            q=query.get("q", "")[:_MAX_SEARCH_CHARS].strip(),
            tool=query.get("tool", ""),
            rule=query.get("rule", ""),
            risk=_listed(query.get("risk", ""), set(RISKS)),
            older=_listed(query.get("older", ""), AGES),
            order=_word(Order, query, "order", Order.EXPIRES),
            group=_listed(query.get("group", ""), set(GroupBy)),
            # "²" is a digit and no number
            page=max(1, int(page)) if page.isdecimal() and len(page) < 9 else 1,
        )

    @property
    def narrowed(self) -> bool:
        """Whether it leaves requests of its view out."""
        return any((self.q, self.tool, self.rule, self.risk, self.older))

    def address(self, path: str = "/", **changes: Any) -> str:
        """Return the address of a page with this selection.

        Args:
            path: the page.
            **changes: fields that are otherwise there.
        """
        changed = replace(self, **changes)
        chosen = {
            field.name: str(getattr(changed, field.name))
            for field in fields(self)
            if getattr(changed, field.name) != field.default
        }
        return f"{path}?{urlencode(chosen, errors='replace')}" if chosen else path


class Group(NamedTuple):
    """Requests that have something in common."""

    name: str  # what
    size: int  # how many they are
    oldest_us: int  # when the first of them was asked, microseconds since 1970
    risk: str  # the highest risk among them, empty where none is stated


class Page(NamedTuple):
    """The requests of one page, by id."""

    ids: list[str]  # in order
    found: int  # how many the selection has
    number: int  # this page, from 1
    pages: int  # how many pages there are, at least 1


def select(summaries: Sequence[Summary], chosen: Selection, now_us: int) -> list[Summary]:
    """Return the requests of a selection, in its order.

    Args:
        summaries: the requests of its view, in the view's own order.
        chosen: the selection.
        now_us: the store's time, microseconds since 1970.
    """
    words = chosen.q.casefold().split()
    asked_before = now_us
    if chosen.older:
        asked_before -= AGES[chosen.older].span // timedelta(microseconds=1)
    found = [
        row
        for row in summaries
        if (not chosen.tool or row.tool == chosen.tool)
        and (not chosen.rule or row.rule == chosen.rule)
        and (not chosen.risk or row.risk == chosen.risk)
        and (not chosen.older or row.asked_us <= asked_before)
        and all(word in row.text for word in words)
    ]
    if chosen.view is View.OPEN:
        found.sort(key=_SORT_KEYS[chosen.order])
    return found


def page_of(found: Sequence[Summary], number: int) -> Page:
    """Return one page; a number beyond the last gives the last.

    Args:
        found: the requests of a selection.
        number: the page, from 1.
    """
    pages = max(1, -(-len(found) // PAGE_ROWS))
    number = min(number, pages)
    start = (number - 1) * PAGE_ROWS
    ids = [row.request_id for row in found[start : start + PAGE_ROWS]]
    return Page(ids, len(found), number, pages)


def groups_of(found: Sequence[Summary], by: GroupBy) -> list[Group]:
    """Return the groups of requests, largest first.

    Args:
        found: the requests of a selection.
        by: what those of one group have in common.
    """
    groups: dict[str, Group] = {}
    for row in found:
        name = row.tool if by is GroupBy.TOOL else row.rule
        group = groups.get(name) or Group(name, 0, row.asked_us, "")
        groups[name] = Group(
            name,
            group.size + 1,
            min(group.oldest_us, row.asked_us),
            max(group.risk, row.risk, key=_rank),
        )
    return sorted(groups.values(), key=lambda group: (-group.size, group.name))


def choices(summaries: Sequence[Summary], by: GroupBy, chosen: str) -> list[str]:
    """Return the tools or rules that a filter offers, by name.

    Args:
        summaries: the requests of a view.
        by: tools or rules.
        chosen: what is chosen; it is always offered.
    """
    counted = Counter(row.tool if by is GroupBy.TOOL else row.rule for row in summaries)
    names = {name for name, _ in counted.most_common(MAX_CHOICES)} | {chosen}
    return sorted(names - {""})


def _rank(risk: str) -> int:
    return _RANKS.get(risk, 0)


_SORT_KEYS: Final[Mapping[Order, Callable[[Summary], tuple[int, ...]]]] = {
    Order.EXPIRES: lambda row: (row.expires_us, row.asked_us),
    Order.OLDEST: lambda row: (row.asked_us,),
    Order.NEWEST: lambda row: (-row.asked_us,),
    Order.RISK: lambda row: (-_rank(row.risk), row.expires_us),
}


def _word(kind: type[_Word], query: Mapping[str, str], name: str, default: _Word) -> _Word:
    try:
        return kind(query.get(name, default))
    except ValueError:
        return default


def _listed(value: str, known: Any) -> str:
    return value if value in known else ""
