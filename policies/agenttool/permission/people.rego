package agenttool.permission

# METADATA
# title: As many different people agreed to this very call as have to
# description: |
#   The runtime states of each answer which of the needed roles it counts as. Here it is only looked at: an answer
#   counts once, and only as a role that its person has.
agreed_by_all if {
	data.agenttool.rules.approval.approved
	enough_people
}

enough_people if one_is_enough

enough_people if {
	is_array(input.approval.answers)
	count(answering) >= people_needed
	count(answering) == count(input.approval.answers)
	every role in roles_needed {
		counted(role)
	}
}

answering contains given.answered_by if some given in input.approval.answers

counted(role) if {
	some given in input.approval.answers
	given.counts_as == role
	role in given.roles
}

# METADATA
# title: Any person who may answer is enough
one_is_enough if {
	people_needed == 1
	count(roles_needed) == 0
}

# METADATA
# title: How many different people have to agree
# description: The most that the configuration wants of such a risk, or any of the questions that go to people.
people_needed := max(stated_counts)

stated_counts contains 1

stated_counts contains number if {
	number := data.agenttool.config.effective.approval.approvals_needed[input.permission_profile.risk_level]
	is_count(number)
}

stated_counts contains question.approvals_needed if {
	some question in for_people
	is_count(question.approvals_needed)
}

# METADATA
# title: Roles that have to agree, each a person of its own
roles_needed contains role if {
	roles := data.agenttool.config.effective.approval.required_roles[input.permission_profile.risk_level]
	is_array(roles)
	some role in roles
}

roles_needed contains role if {
	some question in for_people
	is_array(question.required_roles)
	some role in question.required_roles
}

# METADATA
# title: A rule's needs that can't be read need a role that nobody has
roles_needed contains "agenttool.unreadable_approvals_needed" if {
	some question in for_people
	unreadable_needs(question)
}

unreadable_needs(question) if not is_count(object.get(question, "approvals_needed", 1))

unreadable_needs(question) if not is_array(object.get(question, "required_roles", []))

# METADATA
# title: Needs of the configuration that can't be read
roles_needed contains "agenttool.unreadable_approvals_needed" if not configured_needs_readable

configured_needs_readable if {
	needed := data.agenttool.config.effective.approval
	risk := input.permission_profile.risk_level
	is_string(risk)
	is_count(object.get(needed.approvals_needed, risk, 1))
	is_array(object.get(needed.required_roles, risk, []))
}

is_count(number) if {
	is_number(number)
	number >= 1
}

# METADATA
# title: Questions that only people can answer
# description: |
#   One that is held instead of asked is among them: whether it is held depends on what was remembered, and that on how
#   many people are needed.
for_people contains question if {
	some question in questions
	not answered(question.rule)
	not data.agenttool.config.effective.effects[question.rule] == "deny"
}
