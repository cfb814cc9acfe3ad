"""The standard's execution pipeline, once, as a generator without I/O of its own (design
section 3).
"""
