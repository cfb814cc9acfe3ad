package agenttool.config.config_test

import data.agenttool.lib.fixtures_test as f

effective := data.agenttool.config.effective

in_mode(mode) := f.changed({"session": {"mode": mode}})

test_the_defaults_are_the_balanced_preset if {
	effective == data.agenttool.defaults with input as f.base
	data.agenttool.config.preset == "balanced" with input as f.base
}

test_settings_override_single_members if {
	c := effective with input as f.base with data.agenttool.settings as {"budgets": {"asks": 3}}
	c.budgets == {"session": {}, "tools": {}, "asks": 3}
}

test_a_session_may_be_strict if {
	c := effective with input as in_mode("strict")
	c.roles.enforce == true
	c.approval.risk_levels.medium == "ask"
	c.approval.risk_levels.critical == "ask"
}

test_the_configuration_may_be_strict if {
	c := effective with input as f.base with data.agenttool.settings as {"preset": "strict"}
	c.roles.enforce == true
}

test_a_preset_wins_over_general_settings if {
	settings := {"roles": {"enforce": false}}
	c := effective with input as in_mode("strict") with data.agenttool.settings as settings
	c.roles.enforce == true
}

test_settings_may_change_a_preset if {
	settings := {"presets": {"strict": {"roles": {"enforce": false}}}}
	c := effective with input as in_mode("strict") with data.agenttool.settings as settings
	c.roles.enforce == false
}

test_a_mode_may_be_taken_away if {
	settings := {"modes": {"observe": null}}
	data.agenttool.config.preset == "balanced" with input as in_mode("observe") with data.agenttool.settings as settings
}

test_other_modes_choose_nothing[index] if {
	some index, mode in ["default", "", 7, null, ["strict"]]
	document := json.patch(f.base, [{"op": "replace", "path": "/session/mode", "value": mode}])
	effective == data.agenttool.defaults with input as document
}

test_an_unknown_preset_leaves_no_configuration if {
	not effective with input as f.base with data.agenttool.settings as {"preset": "lax"}
}

test_settings_of_the_wrong_type_leave_no_configuration[index] if {
	some index, settings in ["strict", 7, ["strict"]]
	not effective with input as f.base with data.agenttool.settings as settings
}

test_every_preset_is_known_to_a_mode if {
	{name | some name in data.agenttool.defaults.modes} == object.keys(data.agenttool.defaults.presets)
}
