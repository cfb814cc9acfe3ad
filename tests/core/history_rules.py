"""Rules that read what a session has done before: once, and only after something else."""

HISTORY_RULES = """# METADATA
# title: An order is cancelled once, and only after it was looked at
deny contains {"rule": "custom.once", "message": "cancelled already"} if {
	input.tool.name == "cancel_order"
	some earlier in input.session.history
	earlier.tool == input.tool.id
	earlier.outcome in {"running", "succeeded"}
	"/order_id" in earlier.same
}

# METADATA
# title: It has to be looked at first
deny contains {"rule": "custom.after", "message": "look at it first"} if {
	input.tool.name == "cancel_order"
	not looked_at
}

looked_at if {
	some earlier in input.session.history
	earlier.tool == "shop.get_order"
	earlier.outcome == "succeeded"
	"/order_id" in earlier.same
}
"""
