"""Coding agents that call hooks: how each of them asks and what it takes for an answer, which tools
it has, and how its settings get a hook.

Everything that differs between them is in ``data/``, one file an agent.
"""
