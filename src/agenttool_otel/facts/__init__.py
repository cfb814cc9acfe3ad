"""facts, see docs/architecture.md."""
