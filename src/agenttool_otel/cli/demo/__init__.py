"""``agenttool demo``: a scripted agent does a small job with real tools, and every call can be watched."""
