"""From exceptions to the errors of the standard."""
