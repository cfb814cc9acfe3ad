package agenttool.permission

# METADATA
# title: Every concern is clear
all_clear(c) if {
	data.agenttool.rules.declared.clear(c)
	data.agenttool.rules.approval.clear(c)
	data.agenttool.rules.destructive.clear(c)
	facts_clear(c)
	limits_clear(c)
}

# METADATA
# title: Every concern that reads facts is clear
# description: |
#   Shortcuts for the common calls, without facts or with paths alone; they say no more than the concerns would.
facts_clear(c) if {
	input.facts.urls == []
	input.facts.shell == []
	input.facts.sql == []
	input.facts.provenance == {}
	data.agenttool.rules.network.told
	data.agenttool.rules.paths.clear(c)
} else if {
	data.agenttool.rules.paths.clear(c)
	data.agenttool.rules.shell.clear(c)
	data.agenttool.rules.network.clear(c)
	data.agenttool.rules.sql.clear(c)
	data.agenttool.rules.dataflow.clear(c)
}

# METADATA
# title: Every concern that limits actors and sessions is clear
# description: A shortcut where the configuration sets no limits; it says no more than the concerns would.
limits_clear(c) if {
	c.roles.enforce == false
	c.budgets.session == {}
	c.budgets.tools == {}
	c.evaluation.gates == []
	input.tool.capability_refs == []
	data.agenttool.rules.tenancy.clear(c)
} else if {
	data.agenttool.rules.evaluation.clear(c)
	data.agenttool.rules.roles.clear(c)
	data.agenttool.rules.tenancy.clear(c)
	data.agenttool.rules.budgets.clear(c)
}

# METADATA
# title: Concerns that are not clear
# description: |
#   A concern in shadow mode does not count. The engine puts it there by renaming the rules of its package to
#   shadowed_ask and shadowed_deny, so a name that is not there is the normal case.
unclear contains "approval" if {
	not data.agenttool.rules.approval.clear(data.agenttool.config.effective)
	not data.agenttool.rules.approval.shadowed_ask
}

unclear contains "budgets" if {
	not data.agenttool.rules.budgets.clear(data.agenttool.config.effective)
	not data.agenttool.rules.budgets.shadowed_deny
}

unclear contains "dataflow" if {
	not data.agenttool.rules.dataflow.clear(data.agenttool.config.effective)
	not data.agenttool.rules.dataflow.shadowed_ask
}

unclear contains "declared" if {
	not data.agenttool.rules.declared.clear(data.agenttool.config.effective)
	not data.agenttool.rules.declared.shadowed_ask
}

unclear contains "destructive" if {
	not data.agenttool.rules.destructive.clear(data.agenttool.config.effective)
	not data.agenttool.rules.destructive.shadowed_ask
}

unclear contains "evaluation" if {
	not data.agenttool.rules.evaluation.clear(data.agenttool.config.effective)
	not data.agenttool.rules.evaluation.shadowed_deny
}

unclear contains "network" if {
	not data.agenttool.rules.network.clear(data.agenttool.config.effective)
	not data.agenttool.rules.network.shadowed_ask
}

unclear contains "paths" if {
	not data.agenttool.rules.paths.clear(data.agenttool.config.effective)
	not data.agenttool.rules.paths.shadowed_ask
}

unclear contains "roles" if {
	not data.agenttool.rules.roles.clear(data.agenttool.config.effective)
	not data.agenttool.rules.roles.shadowed_ask
}

unclear contains "shell" if {
	not data.agenttool.rules.shell.clear(data.agenttool.config.effective)
	not data.agenttool.rules.shell.shadowed_ask
}

unclear contains "sql" if {
	not data.agenttool.rules.sql.clear(data.agenttool.config.effective)
	not data.agenttool.rules.sql.shadowed_ask
}

unclear contains "tenancy" if {
	not data.agenttool.rules.tenancy.clear(data.agenttool.config.effective)
	not data.agenttool.rules.tenancy.shadowed_deny
}

# METADATA
# title: What denies the call
# description: Denials of concerns and of custom rules.
denials contains finding if {
	"approval" in unclear
	some finding in data.agenttool.rules.approval.deny
}

denials contains finding if {
	"budgets" in unclear
	some finding in data.agenttool.rules.budgets.deny
}

denials contains finding if {
	"declared" in unclear
	some finding in data.agenttool.rules.declared.deny
}

denials contains finding if {
	"destructive" in unclear
	some finding in data.agenttool.rules.destructive.deny
}

denials contains finding if {
	"evaluation" in unclear
	some finding in data.agenttool.rules.evaluation.deny
}

denials contains finding if {
	"network" in unclear
	some finding in data.agenttool.rules.network.deny
}

denials contains finding if {
	"paths" in unclear
	some finding in data.agenttool.rules.paths.deny
}

denials contains finding if {
	"shell" in unclear
	some finding in data.agenttool.rules.shell.deny
}

denials contains finding if {
	"sql" in unclear
	some finding in data.agenttool.rules.sql.deny
}

denials contains finding if {
	"tenancy" in unclear
	some finding in data.agenttool.rules.tenancy.deny
}

denials contains finding if some finding in data.agenttool.extension.deny

# METADATA
# title: What is asked about
asks contains finding if {
	"approval" in unclear
	some finding in data.agenttool.rules.approval.ask
}

asks contains finding if {
	"dataflow" in unclear
	some finding in data.agenttool.rules.dataflow.ask
}

asks contains finding if {
	"declared" in unclear
	some finding in data.agenttool.rules.declared.ask
}

asks contains finding if {
	"destructive" in unclear
	some finding in data.agenttool.rules.destructive.ask
}

asks contains finding if {
	"network" in unclear
	some finding in data.agenttool.rules.network.ask
}

asks contains finding if {
	"paths" in unclear
	some finding in data.agenttool.rules.paths.ask
}

asks contains finding if {
	"roles" in unclear
	some finding in data.agenttool.rules.roles.ask
}

asks contains finding if {
	"shell" in unclear
	some finding in data.agenttool.rules.shell.ask
}

asks contains finding if {
	"sql" in unclear
	some finding in data.agenttool.rules.sql.ask
}

questions contains finding if some finding in asks

questions contains finding if some finding in data.agenttool.extension.ask

# METADATA
# title: A concern without an answer
# description: This is what an error inside a rule becomes on an engine that carries on after errors.
questions contains {
	"rule": concat("", ["agenttool.rules.", concern, ".unproven"]),
	"message": "a concern could not be decided",
	"type": "policy",
} if {
	some concern in unclear
	not explained(concern)
}

explained(concern) if {
	prefix := concat("", ["agenttool.rules.", concern, "."])
	some finding in (asks | denials)
	startswith(finding.rule, prefix)
}
