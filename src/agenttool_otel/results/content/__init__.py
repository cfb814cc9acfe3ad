"""What a result holds, and how it is shown."""
