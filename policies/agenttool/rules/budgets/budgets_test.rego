package agenttool.rules.budgets_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.budgets.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.budgets.deny)

name(rule) := concat(".", ["agenttool.rules.budgets", rule])

limited(session, tools) := {"budgets": {"session": session, "tools": tools}}

test_without_limits_nothing_is_used_up if {
	no_findings with input as f.base
	denied == set() with input as f.base
}

test_a_session_within_its_limits_is_clear if {
	settings := limited({"calls": 4, "tool_calls": 2, "asks": 1, "denials": 1, "result_bytes": 101}, {})
	no_findings with input as f.base with data.agenttool.settings as settings
	denied == set() with input as f.base with data.agenttool.settings as settings
}

test_a_session_at_a_limit_is_denied[counter] if {
	some counter, limit in {"calls": 3, "tool_calls": 1, "asks": 0, "denials": 0, "result_bytes": 100}
	settings := limited({counter: limit}, {})
	not no_findings with input as f.base with data.agenttool.settings as settings
	denied == {name("session")} with input as f.base with data.agenttool.settings as settings
}

test_a_limit_that_is_no_number_is_used_up[index] if {
	some index, limit in ["100", null, true, [100], {}]
	not no_findings with input as f.base with data.agenttool.settings as limited({"calls": limit}, {})
	denied == {name("session")} with input as f.base with data.agenttool.settings as limited({"calls": limit}, {})
}

test_an_unknown_counter_is_used_up if {
	denied == {name("session")} with input as f.base with data.agenttool.settings as limited({"coins": 5}, {})
}

test_limits_that_are_no_object_are_used_up if {
	denied == {name("session")} with input as f.base with data.agenttool.settings as {"budgets": {"session": 5}}
	denied == {name("tool")} with input as f.base with data.agenttool.settings as {"budgets": {"tools": 5}}
}

test_a_tool_within_its_limit_is_clear if {
	no_findings with input as f.base with data.agenttool.settings as limited({}, {"local.files.*": 2, "web.*": 0})
}

test_a_tool_at_its_limit_is_denied[pattern] if {
	some pattern in ["local.files.*", "read_file"]
	settings := limited({}, {pattern: 1})
	not no_findings with input as f.base with data.agenttool.settings as settings
	denied == {name("tool")} with input as f.base with data.agenttool.settings as settings
}

test_questions_have_a_budget_too if {
	c := data.agenttool.config.effective
	data.agenttool.rules.budgets.may_ask(c) with input as f.base
	limited_asks := {"budgets": {"asks": 2}}
	may_ask with input as f.base with data.agenttool.settings as limited_asks
	not may_ask with input as f.changed({"session": {"counters": {"asks": 2}}})
		with data.agenttool.settings as limited_asks
	not may_ask with input as f.base with data.agenttool.settings as {"budgets": {"asks": "many"}}
}

may_ask if data.agenttool.rules.budgets.may_ask(data.agenttool.config.effective)

members := ["/session/counters/calls", "/session/counters", "/session"]

test_a_missing_counter_is_used_up if {
	{document |
		some document in f.missing(f.base, members)
		no_findings with input as document with data.agenttool.settings as limited({"calls": 100}, {})
	} == set()
}

test_a_mistyped_counter_is_used_up if {
	{document |
		some document in f.mistyped(f.base, members, ["3", -1, [3], {"x": 3}, null, false])
		no_findings with input as document with data.agenttool.settings as limited({"calls": 100}, {})
	} == set()
}

test_extra_members_change_nothing if {
	no_findings with input as f.extended with data.agenttool.settings as limited({"calls": 100}, {})
}

configured if data.agenttool.rules.budgets.configured

test_without_a_budget_counters_are_not_read if {
	not configured with input as f.base
	not configured with input as f.changed({"session": {"mode": "plan"}})
}

test_a_budget_in_settings_or_in_a_preset_is_one if {
	configured with input as f.base with data.agenttool.settings as {"budgets": {"asks": 5}}
	configured with input as f.changed({"session": {"mode": "strict"}})
	configured with input as f.base with data.agenttool.settings as {"preset": "strict"}
}

test_a_budget_of_a_preset_binds if {
	settings := {"presets": {"strict": {"budgets": {"session": {"calls": 3}}}}}
	document := f.changed({"session": {"mode": "strict"}})
	denied == {name("session")} with input as document with data.agenttool.settings as settings
	denied == set() with input as f.base with data.agenttool.settings as settings
}
