"""Asks where people are: signed webhooks out, signed answers in."""
