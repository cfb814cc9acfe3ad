package agenttool.permission

# METADATA
# title: The answer that has one reason and nothing else
plain_answer(behavior, reason) := {
	"behavior": behavior,
	"reason": {
		"type": object.get(reason, "type", "rule"),
		"rule_ref": reason.rule,
		"message": reason.message,
	},
	"rule_refs": [reason.rule],
	"updated_input": null,
	"suggested_updates": [],
	"blocked_path": null,
	"alternatives": [],
	"obligations": data.agenttool.redaction.obligations,
	"approver_roles": [],
	"expires_at": null,
}

# METADATA
# title: The answer made of findings
# description: |
#   The reason is the most telling finding's: one of a rule that is not in the list of general ones, else the one that
#   comes first there. Of equal ones the first name decides, so that all engines tell the same.
answer(behavior, findings) := object.union(reasoned(behavior, findings), object.union(people_asked(behavior), {
	"updated_input": null,
	"suggested_updates": suggestions(behavior),
	"blocked_path": blocked_path(findings),
	"alternatives": alternatives,
	"approver_roles": approver_roles(behavior),
	"expires_at": null,
}))

# METADATA
# title: The answer that allows a call with findings
# description: It names no place, so that it depends on none.
allowed_by(findings) := object.union(reasoned("allow", findings), {
	"updated_input": updated_input,
	"suggested_updates": [],
	"blocked_path": null,
	"alternatives": [],
	"approver_roles": [],
	"expires_at": expires_at,
})

# METADATA
# title: What each answer that is made of findings has
reasoned(behavior, findings) := document if {
	rule := min({[generality(finding.rule), finding.rule] | some finding in findings})[1]
	document := object.union(questions_told(behavior), {
		"behavior": behavior,
		"reason": {
			"type": min({kind | some finding in findings; finding.rule == rule; kind := reason_type(finding)}),
			"rule_ref": rule,
			"message": min({finding.message | some finding in findings; finding.rule == rule}),
		},
		"rule_refs": array.concat([rule], sort({other | some other in contributing_rules(findings); other != rule})),
		"obligations": data.agenttool.redaction.combined(
			data.agenttool.config.effective,
			data.agenttool.redaction.obligations,
			contributors,
		),
		"source": min({origin | some finding in findings; finding.rule == rule; origin := rule_source(finding)}),
	})
}

# METADATA
# title: How general a rule is
# description: |
#   Its number in defaults.permission.general_rules, or of what its name begins with in general_prefixes; 0 for others.
#   The most telling rule is chosen by it.
generality(rule) := place if {
	place := object.get(data.agenttool.defaults.permission.general_rules, rule, 0)
	place != 0
} else := min(places) if {
	places := {place |
		some prefix, place in data.agenttool.defaults.permission.general_prefixes
		startswith(rule, prefix)
	}
	count(places) > 0
} else := 0

# METADATA
# title: Findings that belong into the answer
contributors contains finding if some finding in denials

contributors contains finding if some finding in questions

contributors contains finding if some finding in data.agenttool.extension.allow

contributors contains finding if some finding in holding

contributing_rules(findings) := {finding.rule | some finding in findings} | {finding.rule |
	some finding in contributors
}

# METADATA
# title: Kind of reason
# description: A custom rule's unknown word would make the whole document unusable, so it counts as a plain rule.
reason_type(finding) := finding.type if {
	finding.type in {
		"rule",
		"mode",
		"policy",
		"hook",
		"classifier",
		"working_dir",
		"sandbox_override",
		"safety_check",
		"permission_prompt_tool",
		"async_agent",
		"subcommand_results",
		"other",
	}
} else := "rule"

# METADATA
# title: Where a rule comes from
# description: One of the standard's rule sources, where the rule states it; else an empty string.
rule_source(finding) := finding.source if {
	finding.source in {
		"user_settings",
		"project_settings",
		"local_settings",
		"flag_settings",
		"policy_settings",
		"cli_arg",
		"command",
		"session",
	}
} else := ""

# METADATA
# title: The input that a custom rule wants instead
updated_input := update if {
	count(updates) == 1
	some update in updates
} else := null

# METADATA
# title: Who may answer
# description: Roles of which an approver needs one; without any, everybody who is identified may answer.
approver_roles(behavior) := data.agenttool.rules.approval.needed_roles if {
	behavior == "ask"
} else := []

# METADATA
# title: How many people have to agree
# description: Stated where any one who may answer is not enough.
people_asked(behavior) := {"approvals_needed": people_needed, "required_roles": sort(roles_needed)} if {
	behavior == "ask"
	not one_is_enough
} else := {}

# METADATA
# title: What an approver may accept besides the call itself
# description: |
#   Grants of this tool with exactly these arguments, for a while, as the approval store understands them. None where
#   some question may not be remembered or several people have to agree, nor once a grant was there and did not suffice.
suggestions(behavior) := array.concat(array.concat(grants, target_grants), array.concat(fact_grants, custom_suggestions)) if {
	behavior == "ask"
	input.approval == null
} else := []

grants := [{"type": "grant", "scope": scope, "args": "exact", "expires_in": remember.expires_in} |
	remember := data.agenttool.config.effective.approval.remember
	some scope in remember.scopes
	shared(scope)
] if {
	offered
} else := []

# METADATA
# title: Grants of this tool for calls that reach the same
# description: |
#   The runtime puts the targets in, or leaves them out where the call has none. None where some question is about
#   more than whom or what the call reaches.
target_grants := [{"type": "grant", "scope": scope, "args": "target", "expires_in": remember.expires_in} |
	remember := data.agenttool.config.effective.approval.remember
	some scope in remember.targets
	shared(scope)
] if {
	offered
	data.agenttool.provenance.traced
	count(data.agenttool.provenance.targets) > 0
	about_targets
} else := []

about_targets if {
	every question in open_questions {
		data.agenttool.lib.holds(data.agenttool.config.effective.approval.remember.target_rules, question.rule, true)
	}
}

# METADATA
# title: Grants of this tool for calls of the same facts
# description: |
#   The runtime puts the facts in, or leaves them out where it has no facts that a person could agree to. None where
#   some question is about more than what the facts tell.
fact_grants := [{"type": "grant", "scope": scope, "args": "facts", "expires_in": remember.expires_in} |
	remember := data.agenttool.config.effective.approval.remember
	some scope in remember.facts
	shared(scope)
] if {
	offered
	told_by_facts
} else := []

told_by_facts if {
	facts_tell
	every question in open_questions {
		data.agenttool.lib.holds(data.agenttool.config.effective.approval.remember.fact_rules, question.rule, true)
	}
}

facts_tell if input.facts.paths != []

facts_tell if input.facts.urls != []

facts_tell if input.facts.shell != []

# METADATA
# title: What answers this call's questions may be remembered
offered if {
	is_string(input.tool.id)
	one_is_enough
	call_rememberable(data.agenttool.config.effective.approval.never_remember)
	every question in open_questions {
		rememberable(question.rule)
	}
}

# METADATA
# title: The call has what a grant of this scope is bound to
shared("session") if {
	is_string(input.session.id)
	input.session.id != ""
}

shared("actor") if acting

shared("tenant") if named(input.actor.tenant)

shared("root") if {
	is_array(input.session.roots)
	input.session.roots != []
	acting
}

acting if {
	is_string(input.actor.id)
	input.actor.id != ""
}

named(value) if {
	is_string(value)
	value != ""
}

custom_suggestions := [suggestion |
	some rule in sort({finding.rule | some finding in open_questions})
	some finding in open_questions
	finding.rule == rule
	is_array(finding.suggested_updates)
	some suggestion in finding.suggested_updates
	is_object(suggestion)
	offerable(suggestion)
]

# METADATA
# title: A suggestion of a custom rule may be shown
# description: A grant that would not answer every question of the call next time is none.
offerable(suggestion) if {
	object.get(suggestion, "type", null) != "grant"
} else if {
	offered
}

# METADATA
# title: The path that the answer is about
blocked_path(findings) := min(paths_of(findings)) if {
	count(paths_of(findings)) > 0
} else := null

paths_of(findings) := {finding.blocked_path |
	some finding in findings
	is_string(finding.blocked_path)
}

# METADATA
# title: Safer calls
# description: Those of the findings, in the order of their rules, then those that the configuration has for the tool.
alternatives := array.concat(found_alternatives, configured_alternatives)

found_alternatives := [alternative |
	some rule in sort({finding.rule | some finding in contributors})
	some finding in contributors
	finding.rule == rule
	is_array(finding.alternatives)
	some alternative in finding.alternatives
	is_object(alternative)
]

configured_alternatives := [alternative |
	some pattern in sort(object.keys(data.agenttool.config.effective.alternatives))
	data.agenttool.lib.is_called(pattern)
	some alternative in data.agenttool.config.effective.alternatives[pattern]
	is_object(alternative)
]

# METADATA
# title: Until when the answer holds
expires_at := min(expiries) if {
	count(expiries) > 0
} else := null

expiries contains finding.expires_at if {
	some finding in data.agenttool.extension.allow
	is_string(finding.expires_at)
}
