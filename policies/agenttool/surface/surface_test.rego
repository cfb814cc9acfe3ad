package agenttool.surface.surface_test

import data.agenttool.lib.fixtures_test as f

visible := data.agenttool.surface.visible

reason := data.agenttool.surface.reason

test_an_available_tool_is_shown if {
	visible == true with input as f.base
	reason == null with input as f.base
	visible == true with input as f.extended
}

test_tools_in_other_states_are_hidden_with_a_reason[state] if {
	some state, why in {
		"deferred": "deferred_until_discovered",
		"requires_setup": "setup_required",
		"disabled": "feature_disabled",
		"retired": "feature_disabled",
		"unheard of": "policy_blocked",
	}
	visible == false with input as f.changed({"tool": {"lifecycle": state}})
	reason == why with input as f.changed({"tool": {"lifecycle": state}})
}

test_hidden_and_forbidden_tools_are_not_shown[index] if {
	some index, settings in [
		{"surface": {"hidden_tools": ["read_file"]}},
		{"destructive": {"forbidden_tools": ["local.*"]}},
	]
	visible == false with input as f.base with data.agenttool.settings as settings
	reason == "policy_blocked" with input as f.base with data.agenttool.settings as settings
}

test_tools_without_a_role_are_not_shown_where_roles_count if {
	document := f.changed({"actor": {"roles": []}, "session": {"mode": "strict"}})
	visible == false with input as document
	reason == "role_not_allowed" with input as document
}

test_another_tenants_tool_is_not_shown if {
	document := f.changed({"permission_profile": {"tenant_scope": "umbrella"}})
	visible == false with input as document
	reason == "policy_blocked" with input as document
}

test_a_tenant_held_to_tools_sees_only_those if {
	settings := {"tenancy": {"tools": {"acme": ["web.*"]}}}
	visible == false with input as f.base with data.agenttool.settings as settings
}

test_without_a_configuration_nothing_is_shown if {
	visible == false with input as f.base with data.agenttool.settings as {"preset": "lax"}
	reason == "policy_blocked" with input as f.base with data.agenttool.settings as {"preset": "lax"}
}

test_a_missing_or_mistyped_member_hides_the_tool if {
	members := ["/tool/lifecycle", "/permission_profile/tenant_scope", "/tool"]
	{document |
		some document in (f.missing(f.base, members) | f.mistyped(f.base, members, [7, [7], "nonsense"]))
		visible with input as document
	} == set()
}
