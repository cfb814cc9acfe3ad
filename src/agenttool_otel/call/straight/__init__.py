"""The straight way of an ordinary call: what ``govern`` and a context settle once, and no generator."""
