"""Writing policies: a project to start from, its checks, its tests, explanations of decisions, and
bundles to ship.
"""
