"""Detectors: each finds one kind of secret."""
