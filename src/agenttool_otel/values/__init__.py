"""Plain values: JSON conversion, deep copies, canonical digests, Unicode."""
