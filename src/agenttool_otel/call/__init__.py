"""One call: from its arguments to what is recorded of it."""
