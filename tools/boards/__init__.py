"""Grafana dashboards as code: ``python tools/make_boards.py`` writes dashboards/grafana/*.json."""

from boards.boards import BOARDS, generate

__all__ = ["BOARDS", "generate"]
