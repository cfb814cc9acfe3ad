"""What the policy would decide about a tool, found by asking it."""
