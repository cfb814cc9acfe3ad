"""A call that goes on: what its body may ask of it, what it tells of itself, and how it is
stopped.
"""
