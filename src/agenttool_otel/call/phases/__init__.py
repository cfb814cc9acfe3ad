"""The standard's execution pipeline, once, as a generator without I/O of its own."""
