"""Places where a credential stands, by kind: each module has its patterns and nothing else.

To add a place, add a ``Statement`` to the module of its kind, and a row for it to
``tests/redaction/known_places.toml``.
"""
