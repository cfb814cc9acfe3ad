"""URLs: how browsers and Python clients read them, and where they lead."""

from agenttool_otel.readers.urls.fact import url_fact

__all__ = ["url_fact"]
