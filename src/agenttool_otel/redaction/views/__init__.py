"""Other readings of a text in which a secret may show."""
