# Tests lie outside of agenttool.custom: what is in there takes part in every decision.
package agenttool.custom_test

import data.agenttool.lib.fixtures_test as f

decided(document) := decision if {
	decision := data.agenttool.permission.decision with input as document
}

deploy(time) := f.changed({
	"time": time,
	"tool": {"id": "deploy", "namespace": "", "name": "deploy"},
})

test_a_deployment_on_a_frozen_day_is_denied[time] if {
	some time in ["2026-11-20T12:00:00Z", "2026-11-21T00:00:00Z", "2026-11-22T23:59:59Z"]
	decision := decided(deploy(time))
	decision.behavior == "deny"
	decision.reason.rule_ref == "custom.deployments.frozen_day"
}

test_a_deployment_on_another_day_is_not_our_concern if {
	decision := decided(deploy("2026-11-19T12:00:00Z"))
	decision.behavior == "allow"
}

test_other_tools_are_not_our_concern if {
	decision := decided(f.changed({"time": "2026-11-20T12:00:00Z"}))
	decision.behavior == "allow"
}

test_without_a_list_every_day_is_frozen[broken] if {
	some broken, days in {"nothing": null, "an object": {}}
	document := deploy("2026-11-19T12:00:00Z")
	data.agenttool.custom.deny != set() with input as document with data.agenttool.custom.deployments.frozen_days as days
}
