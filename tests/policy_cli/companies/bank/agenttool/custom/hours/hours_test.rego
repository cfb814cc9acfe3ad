package agenttool.custom_test.hours

import data.agenttool.lib.fixtures_test as f

wire := {"tool": {"id": "bank.wire_money", "namespace": "bank", "name": "wire_money"}}

denied_at(moment) if {
	document := object.union(f.changed(wire), {"time": moment})
	decision := data.agenttool.permission.decision with input as document
	decision.reason.rule_ref == "bank.hours.closed"
	decision.behavior == "deny"
}

test_out_of_hours_nothing_leaves if {
	every moment in ["2026-11-21T12:00:00Z", "2026-11-20T03:00:00Z", "2026-11-20T19:00:00Z"] {
		denied_at(moment)
	}
}

test_in_hours_it_may_leave if {
	not denied_at("2026-11-20T12:00:00Z")
}

test_accounts_of_others_are_out_of_reach if {
	other := {"resources": {"account": {"tenant": "globex"}}, "time": "2026-11-20T12:00:00Z"}
	found := data.agenttool.custom.hours.deny with input as object.union(f.changed(wire), other)
	{finding.rule | some finding in found} == {"bank.hours.other_tenant"}
}
