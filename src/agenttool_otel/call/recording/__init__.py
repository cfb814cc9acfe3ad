"""What a call leaves behind: its span, events and metrics, and the redaction of what they show."""
