"""results, see docs/architecture.md."""
