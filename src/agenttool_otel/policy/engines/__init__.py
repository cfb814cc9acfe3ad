"""Engines that evaluate Rego."""
