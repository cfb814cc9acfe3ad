# Tests lie outside of agenttool.custom: what is in there takes part in every decision.
package agenttool.custom_test

import data.agenttool.lib.fixtures_test as f

decided(amount) := decision if {
	document := f.changed({"tool": {"id": "pay", "namespace": "", "name": "pay"}, "input": {"amount": amount}})
	decision := data.agenttool.permission.decision with input as document
}

test_a_small_payment_is_not_our_concern if {
	decided(1000).behavior == "allow"
}

test_a_large_payment_needs_a_person if {
	decision := decided(1001)
	decision.behavior == "ask"
	decision.reason.rule_ref == "custom.payments.large"
}

test_a_payment_above_the_limit_is_denied[amount] if {
	some amount in [10001, "20", null]
	decision := decided(amount)
	decision.behavior == "deny"
	decision.reason.rule_ref == "custom.payments.limit"
}

test_other_tools_are_not_our_concern if {
	document := f.changed({"input": {"amount": 99999}})
	decision := data.agenttool.permission.decision with input as document
	decision.behavior == "allow"
}
