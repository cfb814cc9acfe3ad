"""Calls that wait for an answer or for a result, in memory and in the store."""
