"""Which words of a program's command line a reviewed table accounts for."""
