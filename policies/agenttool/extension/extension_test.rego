package agenttool.extension.extension_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.extension.no_findings

denied := f.rules(data.agenttool.extension.deny)

asked := f.rules(data.agenttool.extension.ask)

allowed := f.rules(data.agenttool.extension.allow)

finding := {"rule": "acme.rule", "message": "a rule of ours"}

test_without_custom_rules_nothing_is_said if {
	no_findings with data.agenttool.custom as {}
	denied == set() with data.agenttool.custom as {}
	asked == set() with data.agenttool.custom as {}
}

test_rules_of_the_package_itself_count if {
	denied == {"acme.rule"} with data.agenttool.custom as {"deny": [finding]}
	asked == {"acme.rule"} with data.agenttool.custom as {"ask": [finding]}
	allowed == {"acme.rule"} with data.agenttool.custom as {"allow": [finding]}
	denied == {"acme.rule"} with data.agenttool.custom as {"deny": {finding}}
}

test_rules_of_packages_below_count if {
	denied == {"acme.rule"} with data.agenttool.custom as {"acme": {"deny": [finding]}}
	asked == {"acme.rule"} with data.agenttool.custom as {"acme": {"ask": [finding]}}
	allowed == {"acme.rule"} with data.agenttool.custom as {"acme": {"allow": [finding]}}
	not no_findings with data.agenttool.custom as {"acme": {"allow": [finding]}}
}

test_rules_that_say_nothing_are_quiet if {
	no_findings with data.agenttool.custom as {"acme": {"deny": [], "ask": false}, "limits": {"x": 3}, "name": "x"}
}

test_a_finding_without_a_name_still_counts[index] if {
	some index, broken in ["no", 7, {}, {"rule": "x"}, {"rule": 7, "message": "m"}, null]
	denied == {"agenttool.custom.deny"} with data.agenttool.custom as {"acme": {"deny": [broken]}}
	asked == {"agenttool.custom.ask"} with data.agenttool.custom as {"acme": {"ask": [broken]}}
	allowed == set() with data.agenttool.custom as {"acme": {"allow": [broken]}}
}

test_a_rule_that_is_no_set_still_counts[index] if {
	some index, value in [true, "no", 7, {"rule": "x"}, null]
	denied == {"agenttool.custom.deny"} with data.agenttool.custom as {"acme": {"deny": value}}
	asked == {"agenttool.custom.ask"} with data.agenttool.custom as {"ask": value}
	allowed == set() with data.agenttool.custom as {"acme": {"allow": value}}
}

test_custom_rules_name_the_questions_that_they_answer if {
	waives := ["agenttool.rules.declared.writes"]
	data.agenttool.extension.waived == {"agenttool.rules.declared.writes"}
		with data.agenttool.custom as {"acme": {"allow": [object.union(finding, {"waives": waives})]}}
	data.agenttool.extension.waived == set()
		with data.agenttool.custom as {"allow": [object.union(finding, {"waives": "all"})]}
}
