"""The standard's acceptance scenarios, run against this package or a program in any language."""
