"""What holds over all records of a run, whatever it did: one module a subject."""
