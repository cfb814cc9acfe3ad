# METADATA
# title: Refunds, by amount and role
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom.refunds


# METADATA
# title: A refund over what the actor's roles may give
deny contains {
	"rule": "bank.refunds.over_limit",
	"message": "the refund is over the limit of the actor's roles",
} if {
	is_refund
	not within_limit
}

# METADATA
# title: Small refunds need nobody
allow contains {
	"rule": "bank.refunds.small",
	"message": "a small refund in a usual currency",
	"waives": [
		"agenttool.rules.declared.writes",
		"agenttool.rules.declared.access_payment",
		"agenttool.rules.destructive.effects",
		"agenttool.rules.approval.risk",
	],
	"obligations": {"redact_result": ["/iban", "detected"], "max_inline_chars": 2000, "persistence": "never_persist"},
} if {
	is_refund
	within_limit
	usual_currency
	usual_reason
	input.input.amount <= data.agenttool.custom.refunds.limits.agent
}

# METADATA
# title: A refund to a customer of another country
ask contains {
	"rule": "bank.refunds.abroad",
	"message": "the customer lives in another country",
	"type": "safety_check",
} if {
	is_refund
	customer := object.get(input.resources, "customer", {})
	object.get(customer, "country", "") != "DE"
}

is_refund if data.agenttool.lib.is_called("bank.refund")

# The largest limit of all roles that the actor has.
highest := max(limits) if {
	limits := {limit |
		some role in input.actor.roles
		limit := data.agenttool.custom.refunds.limits[role]
	}
	count(limits) > 0
}

within_limit if {
	is_number(input.input.amount)
	input.input.amount > 0
	input.input.amount <= highest
}

usual_currency if {
	is_string(input.input.currency)
	upper(input.input.currency) in data.agenttool.custom.refunds.currencies
}

usual_reason if {
	some reason in data.agenttool.custom.refunds.reasons
	reason == lower(trim_space(input.input.reason))
}
