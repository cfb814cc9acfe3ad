"""Approvals inside LangGraph runs."""
