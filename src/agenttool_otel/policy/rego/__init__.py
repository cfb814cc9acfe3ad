"""Rego as the engine reads it: the native module, its builtins, and the syntax tree of a policy."""
