# METADATA
# title: What the tool's own declaration says
# description: |
#   A tool is allowed by itself only when it states that it is read-only, is available, and touches nothing that
#   the configuration asks about. A tool that states no facts is asked about. A shell command that the configuration
#   agrees to, or an SQL text that is proven to only read, stands for the whole call of a tool that runs it, and a
#   file tool's writes are judged where their paths are (agenttool.rules.paths).
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.declared

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
# description: True only when everything that this package reads has the right type and a harmless value.
no_findings(c) if {
	data.agenttool.lib.identified
	c.declared.lifecycles[input.tool.lifecycle] == "allow"
	effect_known(c)
	access_agreed(c)
}

# METADATA
# title: Stated read-only
# description: |
#   Or a shell tool whose command is agreed to, or a query tool whose statement is, or a file tool whose
#   writes are judged by their paths.
effect_known(c) if {
	input.tool.read_only == true
	stated
} else if {
	input.tool.kind == "shell_command"
	data.agenttool.rules.shell.agreed(c)
} else if {
	data.agenttool.rules.sql.proven(c)
} else if {
	input.tool.read_only == false
	stated
	some fact in input.facts.paths
	fact.access == "write"
	"file_write" in input.permission_profile.access_kinds
	every kind in input.permission_profile.access_kinds {
		data.agenttool.lib.holds(c.declared.file_access_kinds, kind, true)
	}
}

# METADATA
# title: Somebody stated whether the tool only reads
stated if {
	is_array(input.tool.inferred)
	every word in input.tool.inferred {
		is_string(word)
		word != "read_only"
		word != "is_read_only"
	}
}

# METADATA
# title: No access kind that is asked about
access_agreed(c) if {
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		kind_agreed(c, kind)
	}
}

kind_agreed(c, kind) if {
	c.declared.access_kinds[kind] == "allow"
} else if {
	c.declared.shell_access_kinds[kind] == true
	input.tool.kind == "shell_command"
	data.agenttool.rules.shell.agreed(c)
}

# METADATA
# title: The tool is a draft, disabled or retired
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.declared.lifecycle",
	"message": "the tool is in a state in which it may not be called",
} if {
	data.agenttool.config.effective.declared.lifecycles[input.tool.lifecycle] == "deny"
}

# METADATA
# title: The tool is not ready for use
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.declared.not_ready",
	"message": "the tool waits for something, or its state is unknown",
} if {
	not ready
}

ready if data.agenttool.config.effective.declared.lifecycles[input.tool.lifecycle] in {"allow", "deny"}

# METADATA
# title: Nobody said what the tool does
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.declared.unstated",
	"message": "the tool does not state whether it only reads: govern it with read_only= and access_kinds=",
} if {
	not effect_known(data.agenttool.config.effective)
	not stated
}

# METADATA
# title: The tool writes
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.declared.writes",
	"message": "the general rule on tools that write: a remembered answer or always_allow answers it, preset assistant asks only where values are not the user's",
} if {
	not effect_known(data.agenttool.config.effective)
	stated
}

# METADATA
# title: The tool touches what needs a person's agreement
# custom:
#   severity: high
ask contains {
	"rule": concat("", ["agenttool.rules.declared.access_", kind]),
	"message": "the general rule on tools with such access: a remembered answer, always_allow, or preset assistant answers it",
} if {
	c := data.agenttool.config.effective
	is_array(input.permission_profile.access_kinds)
	some kind in input.permission_profile.access_kinds
	is_string(c.declared.access_kinds[kind])
	not kind_agreed(c, kind)
}

# METADATA
# title: The tool's access is unknown
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.declared.unproven",
	"message": "the tool states no access kinds, or one that the policy does not know",
} if {
	not access_known(data.agenttool.config.effective)
}

# METADATA
# title: The tool has no usable name
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.declared.unproven",
	"message": "the tool's names are unknown",
} if {
	not data.agenttool.lib.identified
}

access_known(c) if {
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		kind_known(c, kind)
	}
}

kind_known(c, kind) if is_string(c.declared.access_kinds[kind])

# METADATA
# title: Tools that are proven to only read
allow contains allowed if {
	input.tool.read_only == true
	no_findings(data.agenttool.config.effective)
}

# METADATA
# title: The answer for a tool that is proven to only read
allowed := {"rule": "agenttool.rules.declared.read_only", "message": "the tool only reads"}
