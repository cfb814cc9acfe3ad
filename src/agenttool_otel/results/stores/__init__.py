"""Where large payloads go: one store, over a local directory or an object store, with or without
encryption.
"""
