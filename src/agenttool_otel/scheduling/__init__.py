"""scheduling, see docs/architecture.md."""
