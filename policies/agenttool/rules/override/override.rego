# METADATA
# title: A run outside of a sandbox
# description: |
#   Only where a sandbox refused something to the same call earlier in this session, and sandbox.override is true.
#   No sandbox answers this question, so the call is asked about as if there were none, and runs outside once a person
#   agrees. Where sandbox.override is false, the call is held again.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.override

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if not data.agenttool.sandbox.for_commands

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask
no_findings(c) if {
	is_boolean(c.sandbox.override)
	not refused
} else if {
	c.sandbox.override == false
}

# METADATA
# title: A sandbox refused something to the same call
# description: Not after a rehearsal, whose effects are judged; not where nobody can say that nothing was refused.
refused if {
	data.agenttool.sandbox.for_commands
	not data.agenttool.rules.effects.present
	input.execution.refused != []
}

# METADATA
# title: The same call was refused something
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.override.outside",
	"message": "a sandbox refused what this call does: it may run outside of one once a person agrees",
	"type": "sandbox_override",
} if {
	data.agenttool.sandbox.for_commands
	refused
	data.agenttool.config.effective.sandbox.override == true
}
