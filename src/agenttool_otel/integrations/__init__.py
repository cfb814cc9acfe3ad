"""integrations, see docs/architecture.md."""
