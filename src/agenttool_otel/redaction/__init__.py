"""redaction, see docs/architecture.md."""
