"""Declarations of governed tools: what can be called, and what is known of it before any call."""

from agenttool_otel.catalog.catalog import Catalog
from agenttool_otel.catalog.declare import ToolSource, declare, declare_function
from agenttool_otel.catalog.entry import Entry
from agenttool_otel.catalog.options import Classifier, GovernOptions
from agenttool_otel.catalog.registry import Registry
from agenttool_otel.catalog.spec import ToolSpec

__all__ = [
    "Catalog",
    "Classifier",
    "Entry",
    "GovernOptions",
    "Registry",
    "ToolSource",
    "ToolSpec",
    "declare",
    "declare_function",
]
