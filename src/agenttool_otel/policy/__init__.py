"""policy, see docs/architecture.md."""
