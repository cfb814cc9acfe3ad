"""The standard's execution pipeline, once, as a generator without I/O of its own (design section 3)."""

from agenttool_otel.call.phases.pipeline import Pipeline
from agenttool_otel.call.target import Target

__all__ = ["Pipeline", "Target"]
