# METADATA
# title: What can't be undone
# description: |
#   Destructive tools, irreversible and remote effects are asked about; a destructive call on one of the session's
#   roots itself is denied, and so is a tool that the configuration forbids.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.destructive

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	data.agenttool.lib.none_called(c.destructive.forbidden_tools)
	keeps(c)
	effects_agreed(c)
}

# METADATA
# title: The call destroys nothing
keeps(c) if {
	input.tool.destructive == false
} else if {
	only_reads(c)
}

# METADATA
# title: The tool does not state that it destroys nothing
# description: The first statement of what looks at the names of places, so that other decisions do not depend on them.
may_destroy if not input.tool.destructive == false

# METADATA
# title: The call's effects need no question
effects_agreed(c) if {
	is_array(input.permission_profile.write_effects)
	every effect in input.permission_profile.write_effects {
		data.agenttool.lib.holds(c.destructive.write_effects, effect, "allow")
	}
} else if {
	only_reads(c)
}

# METADATA
# title: The command of this very call is agreed to, or its statement is proven to only read
only_reads(c) if {
	input.tool.kind == "shell_command"
	data.agenttool.rules.shell.agreed(c)
}

only_reads(c) if data.agenttool.rules.sql.proven(c)

# METADATA
# title: A forbidden tool
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.destructive.forbidden_tool",
	"message": "the configuration forbids this tool",
	"type": "safety_check",
} if {
	some pattern in data.agenttool.config.effective.destructive.forbidden_tools
	data.agenttool.lib.is_called(pattern)
}

# METADATA
# title: A destructive call on a root itself
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.destructive.root",
	"message": "a destructive call may not be made on a root itself",
	"type": "safety_check",
	"blocked_path": path,
} if {
	may_destroy
	not keeps(data.agenttool.config.effective)
	is_array(input.session.roots)
	is_array(input.facts.paths)
	some fact in input.facts.paths
	some path in {fact.lexical, fact.resolved}
	path in protected_places
}

# METADATA
# title: Places that no call may destroy
protected_places contains root if some root in input.session.roots

protected_places contains place if some place in data.agenttool.config.effective.destructive.protected_places

# METADATA
# title: A destructive call
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.destructive.declared",
	"message": "the tool is destructive for this input",
	"type": "safety_check",
} if {
	not keeps(data.agenttool.config.effective)
}

# METADATA
# title: Effects that can't be undone or that reach others
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.destructive.effects",
	"message": "the general rule on tools with such effects: a remembered answer, always_allow, or preset assistant answers it",
	"type": "safety_check",
} if {
	not effects_agreed(data.agenttool.config.effective)
}
