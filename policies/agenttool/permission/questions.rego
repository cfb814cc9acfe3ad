package agenttool.permission

# METADATA
# title: Which questions are open, and what answers the others
# description: Stated where something is asked, so that nobody has to work it out from the names of the rules.
questions_told(behavior) := {
	"open_questions": sort(still_open),
	"answered_questions": [{"question": pair[0], "by": pair[1]} | some pair in sort(answers_found)],
} if {
	behavior in {"ask", "allow"}
	count(questions) > 0
} else := {}

still_open contains question.rule if {
	not all_held
	some question in open_questions
}

# METADATA
# title: Pairs of a question and what answers it
answers_found contains [question.rule, name] if {
	some question in questions
	waivable(question.rule)
	some name in waivers_of(question.rule)
}

answers_found contains [question.rule, data.agenttool.rules.approval.allowed.rule] if {
	agreed_by_all
	some question in for_people
}

answers_found contains [question.rule, data.agenttool.rules.approval.remembered.rule] if {
	some question in for_people
	remembered(question.rule)
}

answers_found contains [question.rule, finding.rule] if {
	all_held
	some question in open_questions
	some finding in holding
}

waivers_of(rule) := ({"settings.effects" | data.agenttool.config.effective.effects[rule] == "allow"} | {"settings.approval.always_allow" |
	some entry in data.agenttool.config.effective.approval.always_allow
	always_allows(entry, rule)
}) | (custom_waivers(rule) | stock_waivers(rule))

custom_waivers(rule) := {finding.rule |
	some finding in data.agenttool.extension.allow
	is_array(finding.waives)
	rule in finding.waives
}

stock_waivers(rule) := ({"agenttool.rules.roles" | rule in data.agenttool.rules.roles.waived} | {"agenttool.vouching" | rule in data.agenttool.vouching.waived}) | {"agenttool.sandbox" | rule in data.agenttool.sandbox.waived}
