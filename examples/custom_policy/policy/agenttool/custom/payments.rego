# METADATA
# title: Payments
# description: |
#   How much this project's tools may pay. Tools and amounts (euros) lie in data.json beside this file. Messages are
#   fixed words, because they go to telemetry.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom

# METADATA
# title: No payment above the limit
# description: What is negated is a proof, so an amount that is no number is above every limit.
# custom:
#   severity: high
deny contains {
	"rule": "custom.payments.limit",
	"message": "the amount is above what an agent may pay",
} if {
	pays
	not at_most(data.agenttool.custom.payments.deny_above)
}

# METADATA
# title: A person agrees to large payments
# custom:
#   severity: medium
ask contains {
	"rule": "custom.payments.large",
	"message": "a person has to agree to a payment of this size",
} if {
	pays
	not at_most(data.agenttool.custom.payments.ask_above)
}

# METADATA
# title: The call is a payment
pays if {
	some pattern in data.agenttool.custom.payments.tools
	data.agenttool.lib.is_called(pattern)
}

# METADATA
# title: The amount is a number within a limit
at_most(limit) if {
	is_number(limit)
	is_number(input.input.amount)
	input.input.amount <= limit
}
