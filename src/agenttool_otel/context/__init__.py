"""Who calls, with which settings, in which session."""
