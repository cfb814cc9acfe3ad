package agenttool.rules.evaluation_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.evaluation.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.evaluation.deny)

name(rule) := concat(".", ["agenttool.rules.evaluation", rule])

gated := {"evaluation": {"gates": ["local.files.*"]}}

judged(status, trend, next_step) := f.changed({"evaluation": {
	"status": status,
	"trend": trend,
	"next_step": next_step,
}})

test_a_tool_without_a_gate_is_clear if {
	no_findings with input as f.base
	no_findings with input as judged("fail", "regressing", null)
	no_findings with input as f.with_url({}) with data.agenttool.settings as gated
	denied == set() with input as f.base
}

test_a_gated_tool_without_a_verdict_is_denied if {
	not no_findings with input as f.base with data.agenttool.settings as gated
	denied == {name("absent")} with input as f.base with data.agenttool.settings as gated
}

test_a_tool_may_name_the_gate_itself if {
	document := f.changed({"tool": {"capability_refs": ["agenttool.evaluator_gated"]}})
	not no_findings with input as document
	denied == {name("absent")} with input as document
}

test_a_passing_verdict_opens_the_gate[trend] if {
	some trend in ["first_iteration", "improving", "stable"]
	no_findings with input as judged("pass", trend, null) with data.agenttool.settings as gated
	denied == set() with input as judged("pass", trend, null) with data.agenttool.settings as gated
}

test_other_verdicts_do_not[index] if {
	some index, verdict in [
		["fail", "improving"],
		["not_ready", "improving"],
		["error", "improving"],
		["pass", "regressing"],
		["pass", "unheard of"],
		["PASS", "improving"],
	]
	document := judged(verdict[0], verdict[1], null)
	not no_findings with input as document with data.agenttool.settings as gated
	denied == {name("not_passing")} with input as document with data.agenttool.settings as gated
}

alternatives := {alternative.tool |
	some finding in data.agenttool.rules.evaluation.deny
	some alternative in finding.alternatives
}

test_a_denial_names_the_evaluators_next_step if {
	alternatives == {"outcome_evaluate"} with input as judged("fail", "stable", "outcome_evaluate")
		with data.agenttool.settings as gated
}

test_a_next_step_that_is_no_name_is_not_shown if {
	alternatives == set() with input as judged("fail", "stable", "rm -rf / # now") with data.agenttool.settings as gated
}

test_the_configuration_names_next_steps if {
	steps := {"evaluation": {
		"gates": ["*"],
		"next_step": "outcome_evaluate",
		"next_steps": {"regressing": "outcome_history"},
	}}
	alternatives == {"outcome_history"} with input as judged("fail", "regressing", null)
		with data.agenttool.settings as steps
	alternatives == {"outcome_evaluate"} with input as f.base with data.agenttool.settings as steps
}

members := ["/evaluation/status", "/evaluation/trend", "/evaluation", "/tool/capability_refs", "/tool"]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(judged("fail", "improving", null), members)
		no_findings with input as document with data.agenttool.settings as gated
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(judged("fail", "improving", null), members, [7, [7], {"x": 1}, "nonsense", true])
		no_findings with input as document with data.agenttool.settings as gated
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended
