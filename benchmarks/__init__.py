"""Benchmarks: ratios measured in one interleaved run, never a timed test."""
