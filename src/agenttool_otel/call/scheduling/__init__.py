"""Calls that belong together: who may run beside whom, in which order, and where their
bodies run.
"""
