"""What the policy would say of a tool, found by asking it."""
