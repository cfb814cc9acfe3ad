# METADATA
# title: What an actor's roles permit
# description: |
#   A role grants tools by name, access kind, write effect and risk, and may answer questions that other rules
#   would ask ("waives"). Roles restrict only where the configuration enforces them.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.roles

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	c.roles.enforce == false
} else if {
	c.roles.enforce == true
	is_array(input.actor.roles)
	some role in input.actor.roles
	grants(c, role)
}

# METADATA
# title: The role grants this tool
grants(c, role) if {
	definition := c.roles.definitions[role]
	names_tool(definition)
	covers(definition.access_kinds, input.permission_profile.access_kinds)
	covers(definition.write_effects, input.permission_profile.write_effects)
	definition.risk_levels[input.permission_profile.risk_level] == true
}

names_tool(definition) if {
	some pattern in definition.tools
	data.agenttool.lib.is_exactly(pattern)
}

covers(granted, wanted) if {
	is_array(wanted)
	every item in wanted {
		data.agenttool.lib.holds(granted, item, true)
	}
}

# METADATA
# title: No role grants the tool
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.roles.not_granted",
	"message": "no role of the actor grants this tool",
} if {
	not no_findings(data.agenttool.config.effective)
}

# METADATA
# title: Tools that a role grants
allow contains {
	"rule": "agenttool.rules.roles.granted",
	"message": "a role of the actor grants this tool",
} if {
	c := data.agenttool.config.effective
	c.roles.enforce == true
	no_findings(c)
}

# METADATA
# title: Questions that the actor's roles answer
waived contains rule if {
	c := data.agenttool.config.effective
	is_array(input.actor.roles)
	some role in input.actor.roles
	some rule in c.roles.definitions[role].waives
}
