"""The approval store."""
