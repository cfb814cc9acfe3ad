"""URLs: how browsers and Python clients read them, where they lead, and connecting to what was checked."""

from agenttool_otel.facts.urls.fact import url_fact
from agenttool_otel.facts.urls.pinned import (
    AddressChanged,
    connect_pinned,
    pinned_addresses,
    redirect_fact,
    verify_pinned,
)
from agenttool_otel.facts.urls.readings import normalize_url

__all__ = [
    "AddressChanged",
    "connect_pinned",
    "normalize_url",
    "pinned_addresses",
    "redirect_fact",
    "url_fact",
    "verify_pinned",
]
