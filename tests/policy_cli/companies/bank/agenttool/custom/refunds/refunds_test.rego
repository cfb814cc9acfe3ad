package agenttool.custom_test.refunds

import data.agenttool.lib.fixtures_test as f

refund(amount, roles) := f.changed({
	"tool": {"id": "bank.refund", "namespace": "bank", "name": "refund", "kind": "function", "read_only": false},
	"permission_profile": {"risk_level": "high", "access_kinds": ["payment"], "write_effects": ["remote_mutation"]},
	"input": {"amount": amount, "currency": "eur", "reason": "Late "},
	"actor": {"roles": roles},
	"facts": {"paths": []},
	"resources": {"customer": {"country": "DE"}},
})

decided(document) := decision if {
	decision := data.agenttool.permission.decision with input as document
}

test_a_refund_over_the_limit_is_denied[name] if {
	some name, document in {
		"an agent": refund(51, ["agent"]),
		"a lead": refund(501, ["agent", "lead"]),
		"nobody": refund(1, []),
		"a text": refund("5", ["agent"]),
	}
	decision := decided(document)
	decision.behavior == "deny"
	decision.reason.rule_ref == "bank.refunds.over_limit"
}

test_a_small_refund_is_not_denied if {
	decision := decided(refund(20, ["agent"]))
	decision.behavior != "deny"
	"bank.refunds.small" in decision.rule_refs
	decision.obligations.redact_result != []
}

test_other_tools_are_not_our_concern if {
	decision := decided(f.base)
	decision.behavior == "allow"
	not "bank.refunds.over_limit" in decision.rule_refs
}
