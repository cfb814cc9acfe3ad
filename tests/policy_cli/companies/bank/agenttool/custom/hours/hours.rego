# METADATA
# title: Wires leave in business hours
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom.hours


# METADATA
# title: No wire out of hours
deny contains {
	"rule": "bank.hours.closed",
	"message": "wires leave on working days from eight to six",
} if {
	glob.match("bank.wire_*", null, input.tool.id)
	not open_now
}

open_now if {
	moment := time.parse_rfc3339_ns(input.time)
	day := time.weekday([moment, "Europe/Berlin"])
	not day in {"Saturday", "Sunday"}
	clock := time.clock([moment, "Europe/Berlin"])
	clock[0] >= 8
	clock[0] < 18
}

# METADATA
# title: Another tenant's account
deny contains {
	"rule": "bank.hours.other_tenant",
	"message": "the account belongs to another tenant",
	"blocked_path": "/account",
	"alternatives": [{"tool": "bank.find_account", "arguments": {}, "reason": "looks for the tenant's own accounts"}],
} if {
	glob.match("bank.*", null, input.tool.id)
	owner := input.resources.account.tenant
	owner != input.actor.tenant
}
