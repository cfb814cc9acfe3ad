# METADATA
# title: The permission decision
# description: |
#   One answer for one call: deny before ask before allow. The call is allowed when every concern proves that it has
#   nothing to say, or when every question was answered; when nobody decides, the call is denied.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.permission

# METADATA
# title: The decision
# description: |
#   Always defined. The call without findings is the common case: it reads no more than it has to, and its answer lies
#   ready in the data, because building it would cost as much as deciding.
# entrypoint: true
decision := permitted if {
	permitted.behavior == "allow"
} else := plain_answer("deny", unusable) if {
	not data.agenttool.config.effective
} else := answer("deny", denials) if {
	count(denials) > 0
} else := answer("deny", hardened_questions) if {
	count(hardened_questions) > 0
} else := answer("deny", {nobody_to_ask}) if {
	count(open_questions) > 0
	not askable(data.agenttool.config.effective)
} else := answer("ask", open_questions) if {
	count(open_questions) > 0
} else := answer("deny", {undecided})

# METADATA
# title: The answer of a call that is allowed
# description: |
#   It is the decision wherever it is there. An answer that was kept is found by what this rule reads of the input, which
#   is less than the decision does: only denials and questions name places.
default permitted := {}

permitted := answer_without_findings if {
	data.agenttool.config.effective
	no_concern_has_findings
	data.agenttool.extension.no_findings
} else := allowed_by(holding) if {
	nothing_denied
	all_held
	one_update
} else := allowed_by(permissions) if {
	nothing_denied
	count(open_questions) == 0
	count(permissions) > 0
	one_update
}

# METADATA
# title: Neither a rule nor the configuration denies the call
nothing_denied if {
	data.agenttool.config.effective
	count(denials) == 0
	count(hardened_questions) == 0
}

# METADATA
# title: The answer of a call without findings
# description: Where nothing has to be redacted, it lies ready in the data.
answer_without_findings := data.agenttool.defaults.permission.answers_without_findings[decisive] if {
	data.agenttool.redaction.nothing(data.agenttool.config.effective)
} else := plain_answer("allow", grounds)

# METADATA
# title: The concern that allows a call without findings
# description: The most specific of those that had something to prove.
decisive := "shell" if {
	data.agenttool.rules.shell.proven(data.agenttool.config.effective)
} else := "commands" if {
	input.facts.shell != []
} else := "sql" if {
	input.facts.sql != []
} else := "network" if {
	input.facts.urls != []
} else := "paths" if {
	input.facts.paths != []
} else := "declared"

# METADATA
# title: Why a call without findings is allowed
grounds := data.agenttool.rules.shell.allowed if {
	decisive in {"shell", "commands"}
} else := data.agenttool.rules.sql.allowed if {
	decisive == "sql"
} else := data.agenttool.rules.network.allowed if {
	decisive == "network"
} else := data.agenttool.rules.paths.allowed if {
	decisive == "paths"
} else := data.agenttool.rules.declared.allowed

# METADATA
# title: What permits a call whose questions were all answered
permissions contains data.agenttool.rules.approval.allowed if {
	count(questions) > 0
	data.agenttool.rules.approval.approved
}

permissions contains data.agenttool.rules.approval.remembered if {
	count(questions) > 0
	data.agenttool.rules.approval.granted
}

permissions contains {
	"rule": "agenttool.permission.answered",
	"message": "the configuration, a role or a custom rule answers every question",
} if {
	count(questions) > 0
	not data.agenttool.rules.approval.approved
	not data.agenttool.rules.approval.granted
}

permissions contains {
	"rule": "agenttool.permission.shadowed",
	"message": "only rules in shadow mode have something to say",
	"type": "mode",
} if {
	count(with_findings) == 0
	count(questions) == 0
	not no_concern_has_findings
}

permissions contains grounds if no_concern_has_findings

# METADATA
# title: Custom rules want one new input, or none
one_update if count(updates) < 2

updates contains finding.updated_input if {
	some finding in data.agenttool.extension.allow
	is_object(finding.updated_input)
}

# METADATA
# title: A question can be put to somebody
askable(c) if {
	data.agenttool.rules.budgets.may_ask(c)
	reachable(c)
}

reachable(_) if input.session.interactive == true

reachable(c) if c.approval.non_interactive == "ask"

unusable := {
	"rule": "agenttool.permission.configuration",
	"message": "the policy's configuration is not usable: see preset, modes and presets of data.agenttool.settings",
	"type": "policy",
}

nobody_to_ask := {
	"rule": "agenttool.permission.nobody_to_ask",
	"message": "the call has to be asked about, and nobody may be asked",
	"type": "mode",
}

undecided := {
	"rule": "agenttool.permission.undecided",
	"message": "no rule allows the call",
	"type": "policy",
}
