"""The approvals page: a small local web page over an approval store, see docs/approvals.md."""
