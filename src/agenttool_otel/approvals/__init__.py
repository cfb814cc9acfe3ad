"""approvals, see docs/architecture.md."""
