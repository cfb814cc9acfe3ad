"""Evidence of decisions: records without content, and what another policy would have decided.

A record holds what a policy read, its words as keyed digests. ``agenttool policy replay`` decides
records again, on a policy that is to be tried.
"""
