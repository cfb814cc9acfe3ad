"""URLs: how browsers and Python clients read them, where they lead, and connecting to what was
checked.
"""

from agenttool_otel.facts.urls.fact import url_fact
from agenttool_otel.facts.urls.pinned import AddressChanged, connect_pinned

__all__ = ["AddressChanged", "connect_pinned", "url_fact"]
