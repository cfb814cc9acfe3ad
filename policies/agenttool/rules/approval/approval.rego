# METADATA
# title: Who has to agree, and whether they did
# description: |
#   Asks for tools that demand approval, for high risk, for what the configuration always asks about and for what
#   a hook wants asked. An approved request answers this call's questions, a rejected one denies it, and a call
#   that was asked about stays asked about until an answer is there.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.approval

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	input.permission_profile.approval_required == false
	c.approval.risk_levels[input.permission_profile.risk_level] == "allow"
	hooks_pass
	settled(c)
	attended
	placed
	data.agenttool.lib.none_called(c.approval.always_ask)
}

hooks_pass if {
	input.hooks == []
} else if {
	is_array(input.hooks)
	every hint in input.hooks {
		hint_passes(hint)
	}
}

attended if {
	input.tool.requires_user_interaction == false
} else if {
	input.session.interactive == true
}

placed if {
	input.session.context == "stated"
} else if {
	input.session.context == "none"
}

# METADATA
# title: No earlier question is open
settled(c) if {
	input.approval == null
	input.invocation.resumed == false
} else if {
	agreed(c)
} else if {
	input.invocation.resumed == false
	remembers(c)
}

# METADATA
# title: A person said yes to this very call
# description: Answers the questions of all rules; it never lifts a denial.
approved if agreed(data.agenttool.config.effective)

agreed(c) if {
	input.approval.granted == false
	says_yes(c)
}

# METADATA
# title: A person said yes to such a call before, and asked for that to be remembered
# description: Answers the questions that may be remembered (data.agenttool.permission.remembered), and no others.
granted if remembers(data.agenttool.config.effective)

remembers(c) if {
	input.approval.granted == true
	says_yes(c)
}

says_yes(c) if {
	input.approval.status == "approved"
	is_string(input.approval.request_id)
	authorised(c)
}

authorised(c) if {
	needed(c) == []
} else if {
	is_array(needed(c))
	is_array(input.approval.roles)
	some role in needed(c)
	role in input.approval.roles
}

needed(c) := object.get(c.approval.approver_roles, input.permission_profile.risk_level, []) if {
	is_string(input.permission_profile.risk_level)
}

# METADATA
# title: Roles of which whoever answers needs one
# description: |
#   As they are configured for the call's risk; roles of the wrong type make the whole decision unusable, and so never
#   an approval. A risk that nobody can read needs a role that nobody has.
needed_roles := needed(data.agenttool.config.effective)

default needed_roles := ["agenttool.unreadable_risk_level"]

# METADATA
# title: A person said no
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.approval.rejected",
	"message": "the request for approval was rejected",
	"type": "permission_prompt_tool",
} if {
	input.approval.status == "rejected"
}

# METADATA
# title: A hook refuses
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.approval.hook_denied",
	"message": "a hook refuses the call",
	"type": "hook",
} if {
	is_array(input.hooks)
	some hint in input.hooks
	hint.behavior == "deny"
}

# METADATA
# title: A hook wants a person asked
# description: A hint that is neither allow nor passthrough is read as an ask.
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.approval.hook_asked",
	"message": "a hook wants a person to be asked",
	"type": "hook",
} if {
	is_array(input.hooks)
	some hint in input.hooks
	not hint_passes(hint)
}

hints_readable if is_array(input.hooks)

hint_passes(hint) if hint.behavior in {"allow", "passthrough"}

# METADATA
# title: The tool demands approval
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.approval.required",
	"message": "the tool requires approval of each call",
} if {
	not voluntary
}

voluntary if input.permission_profile.approval_required == false

# METADATA
# title: The risk is high
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.approval.risk",
	"message": "the tool's risk level is asked about",
	"type": "safety_check",
} if {
	not risk_agreed
}

risk_agreed if data.agenttool.config.effective.approval.risk_levels[input.permission_profile.risk_level] == "allow"

# METADATA
# title: The configuration always asks about this tool
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.approval.always_ask",
	"message": "the configuration always asks about this tool",
} if {
	not data.agenttool.lib.none_called(data.agenttool.config.effective.approval.always_ask)
}

# METADATA
# title: Asked before, and not answered
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.approval.sticky",
	"message": "the call was asked about before and has no answer",
} if {
	not settled(data.agenttool.config.effective)
}

# METADATA
# title: The tool needs a person, and nobody is there
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.approval.unattended",
	"message": "the tool needs a person while it runs",
} if {
	not attended
}

# METADATA
# title: The thread lost the context that the program states
# description: Its roots, actor and session are unknown, and nothing limits the call as the program meant it.
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.approval.context_lost",
	"message": "the thread has no context, though the program states one: use carry_context, or agent_context in it",
	"type": "safety_check",
} if {
	not placed
}

# METADATA
# title: Hints of the wrong type
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.approval.unproven",
	"message": "the hooks' hints could not be read",
} if {
	not hints_readable
}

# METADATA
# title: Calls that a person approved
allow contains allowed if approved

# METADATA
# title: The answer for a call that a person approved
allowed := {
	"rule": "agenttool.rules.approval.approved",
	"message": "a person approved the call",
	"type": "permission_prompt_tool",
}

# METADATA
# title: The answer for a call whose approval was remembered
remembered := {
	"rule": "agenttool.rules.approval.remembered",
	"message": "a person approved such calls for a while",
	"type": "permission_prompt_tool",
	"source": "session",
}
