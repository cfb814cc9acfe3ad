"""Bundles: reading, checking, overlaying, signing."""
