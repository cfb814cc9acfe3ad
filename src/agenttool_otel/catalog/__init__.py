"""Declarations of governed tools: what can be called, and what is known of it before any call."""

from agenttool_otel.catalog.declare import ToolSource, declare, declare_function
from agenttool_otel.catalog.options import Classifier, GovernOptions
from agenttool_otel.catalog.registry import Registry
from agenttool_otel.catalog.spec import ToolSpec

__all__ = ["Classifier", "GovernOptions", "Registry", "ToolSource", "ToolSpec", "declare", "declare_function"]
