"""``python -m agenttool_otel.cli``: the ``agenttool`` command of this very Python."""

from agenttool_otel.cli import main

if __name__ == "__main__":
    main()
