"""A call that goes on: what its body may ask of it, what it reports, and how it is
stopped.
"""
