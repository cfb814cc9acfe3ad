package agenttool.permission

# METADATA
# title: Questions that nobody has answered
open_questions contains question if {
	some question in for_people
	not hardened(question.rule)
	not agreed_by_all
	not remembered(question.rule)
}

# METADATA
# title: Questions that the configuration turns into denials
hardened_questions contains question if {
	some question in questions
	hardened(question.rule)
}

hardened(rule) if data.agenttool.config.effective.effects[rule] == "deny"

hardened(rule) if {
	data.agenttool.config.effective.effects[rule] == "held"
	not held_instead(rule)
}

# METADATA
# title: The call is held instead of denied
# description: |
#   A question with the effect "held" is a denial unless a profile answers it, and with it all that is open. No approval
#   and no grant takes the place of the profile: the call would run unheld.
held_instead(rule) if {
	all_could_be_held
	not data.agenttool.rules.approval.approved
	not answered(rule)
	not remembered(rule)
}

all_could_be_held if {
	data.agenttool.sandbox.can_be_held
	every question in questions {
		answered_or_held(question.rule)
	}
}

answered_or_held(rule) if answered(rule)

answered_or_held(rule) if remembered(rule)

answered_or_held(rule) if {
	rule in data.agenttool.sandbox.held_questions
	waivable(rule)
}

# METADATA
# title: Every open question is answered by what holds the body
all_held if {
	data.agenttool.sandbox.can_be_held
	count(open_questions) > 0
	every question in open_questions {
		question.rule in data.agenttool.sandbox.held_questions
		waivable(question.rule)
	}
}

# METADATA
# title: What holds the body, for all open questions
holding contains data.agenttool.sandbox.findings.read if {
	all_held
	some question in open_questions
	question.rule in data.agenttool.sandbox.read_questions
}

holding contains data.agenttool.sandbox.findings.rehearse if {
	all_held
	some question in open_questions
	question.rule in data.agenttool.sandbox.rehearse_questions
}

# METADATA
# title: The question is answered without a person
answered(rule) if {
	waived(rule)
	waivable(rule)
}

# METADATA
# title: Something answers the question, if it may be answered without a person
waived(rule) if data.agenttool.config.effective.effects[rule] == "allow"

waived(rule) if {
	some entry in data.agenttool.config.effective.approval.always_allow
	always_allows(entry, rule)
}

waived(rule) if rule in data.agenttool.rules.roles.waived

waived(rule) if rule in data.agenttool.extension.waived

waived(rule) if rule in data.agenttool.vouching.waived

waived(rule) if rule in data.agenttool.sandbox.waived

# METADATA
# title: The question may be answered without a person
# description: What could not be proven, and what was to be asked whatever else holds, needs a person.
waivable(rule) if {
	not endswith(rule, ".unproven")
	not endswith(rule, ".uncertain")
	not data.agenttool.config.effective.approval.unwaivable[rule] == true
}

# METADATA
# title: An entry of always_allow covers the tool and the question
# description: A string is a glob of tools and covers all questions; an object may name globs of rules.
always_allows(entry, _) if {
	is_string(entry)
	data.agenttool.lib.is_exactly(entry)
}

always_allows(entry, rule) if {
	some pattern in entry.tools
	data.agenttool.lib.is_exactly(pattern)
	some wanted in entry.rules
	glob.match(wanted, null, rule)
}

# METADATA
# title: A remembered approval answers the question
# description: |
#   Decided by the configuration as it is now, not as it was when the approval was given. One person's remembered answer
#   is none where several have to agree.
remembered(rule) if {
	data.agenttool.rules.approval.granted
	one_is_enough
	rememberable(rule)
	call_rememberable(data.agenttool.config.effective.approval.never_remember)
}

# METADATA
# title: The answer to the question may be remembered
# description: What needs a person each time, or is never remembered by configuration, may not.
rememberable(rule) if {
	waivable(rule)
	not data.agenttool.config.effective.approval.never_remember.rules[rule] == true
}

# METADATA
# title: Answers about such a call may be remembered
# description: Positive, so that a missing or mistyped member, or configuration, means that they may not.
call_rememberable(never) if {
	data.agenttool.lib.none_called(never.tools)
	none_listed(never.risk_levels, [input.permission_profile.risk_level])
	none_listed(never.access_kinds, input.permission_profile.access_kinds)
	none_listed(never.write_effects, input.permission_profile.write_effects)
}

none_listed(table, words) if {
	is_object(table)
	is_array(words)
	every word in words {
		is_string(word)
		object.get(table, word, false) == false
	}
}
