package agenttool.permission

# METADATA
# title: No concern has findings
no_concern_has_findings(c) if {
	data.agenttool.rules.declared.no_findings(c)
	data.agenttool.rules.approval.no_findings(c)
	data.agenttool.rules.destructive.no_findings(c)
	no_findings_in_facts(c)
	no_findings_in_limits(c)
}

# METADATA
# title: No concern that reads facts has findings
# description: |
#   Shortcuts for the common calls, without facts or with paths alone; they say no more than the concerns would.
no_findings_in_facts(c) if {
	input.facts.urls == []
	input.facts.shell == []
	input.facts.sql == []
	input.facts.provenance == {}
	data.agenttool.rules.network.nothing_undeclared
	data.agenttool.rules.paths.no_findings(c)
} else if {
	data.agenttool.rules.paths.no_findings(c)
	data.agenttool.rules.shell.no_findings(c)
	data.agenttool.rules.network.no_findings(c)
	data.agenttool.rules.sql.no_findings(c)
	data.agenttool.rules.dataflow.no_findings(c)
}

# METADATA
# title: No concern that limits actors and sessions has findings
# description: A shortcut where the configuration sets no limits; it says no more than the concerns would.
no_findings_in_limits(c) if {
	c.roles.enforce == false
	c.budgets.session == {}
	c.budgets.tools == {}
	c.evaluation.gates == []
	input.tool.capability_refs == []
	data.agenttool.rules.tenancy.no_findings(c)
} else if {
	data.agenttool.rules.evaluation.no_findings(c)
	data.agenttool.rules.roles.no_findings(c)
	data.agenttool.rules.tenancy.no_findings(c)
	data.agenttool.rules.budgets.no_findings(c)
}

# METADATA
# title: Concerns that may have findings
# description: |
#   A concern in shadow mode does not count. The engine puts it there by renaming the rules of its package to
#   shadowed_ask and shadowed_deny, so a name that is not there is the normal case.
with_findings contains "approval" if {
	not data.agenttool.rules.approval.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.approval.shadowed_ask
}

with_findings contains "budgets" if {
	not data.agenttool.rules.budgets.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.budgets.shadowed_deny
}

with_findings contains "dataflow" if {
	not data.agenttool.rules.dataflow.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.dataflow.shadowed_ask
}

with_findings contains "declared" if {
	not data.agenttool.rules.declared.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.declared.shadowed_ask
}

with_findings contains "destructive" if {
	not data.agenttool.rules.destructive.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.destructive.shadowed_ask
}

with_findings contains "evaluation" if {
	not data.agenttool.rules.evaluation.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.evaluation.shadowed_deny
}

with_findings contains "network" if {
	not data.agenttool.rules.network.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.network.shadowed_ask
}

with_findings contains "paths" if {
	not data.agenttool.rules.paths.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.paths.shadowed_ask
}

with_findings contains "roles" if {
	not data.agenttool.rules.roles.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.roles.shadowed_ask
}

with_findings contains "shell" if {
	not data.agenttool.rules.shell.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.shell.shadowed_ask
}

with_findings contains "sql" if {
	not data.agenttool.rules.sql.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.sql.shadowed_ask
}

with_findings contains "tenancy" if {
	not data.agenttool.rules.tenancy.no_findings(data.agenttool.config.effective)
	not data.agenttool.rules.tenancy.shadowed_deny
}

# METADATA
# title: What denies the call
# description: Denials of concerns and of custom rules.
denials contains finding if {
	"approval" in with_findings
	some finding in data.agenttool.rules.approval.deny
}

denials contains finding if {
	"budgets" in with_findings
	some finding in data.agenttool.rules.budgets.deny
}

denials contains finding if {
	"declared" in with_findings
	some finding in data.agenttool.rules.declared.deny
}

denials contains finding if {
	"destructive" in with_findings
	some finding in data.agenttool.rules.destructive.deny
}

denials contains finding if {
	"evaluation" in with_findings
	some finding in data.agenttool.rules.evaluation.deny
}

denials contains finding if {
	"network" in with_findings
	some finding in data.agenttool.rules.network.deny
}

denials contains finding if {
	"paths" in with_findings
	some finding in data.agenttool.rules.paths.deny
}

denials contains finding if {
	"shell" in with_findings
	some finding in data.agenttool.rules.shell.deny
}

denials contains finding if {
	"sql" in with_findings
	some finding in data.agenttool.rules.sql.deny
}

denials contains finding if {
	"tenancy" in with_findings
	some finding in data.agenttool.rules.tenancy.deny
}

denials contains finding if some finding in data.agenttool.extension.deny

# METADATA
# title: What is asked about
asks contains finding if {
	"approval" in with_findings
	some finding in data.agenttool.rules.approval.ask
}

asks contains finding if {
	"dataflow" in with_findings
	some finding in data.agenttool.rules.dataflow.ask
}

asks contains finding if {
	"declared" in with_findings
	some finding in data.agenttool.rules.declared.ask
}

asks contains finding if {
	"destructive" in with_findings
	some finding in data.agenttool.rules.destructive.ask
}

asks contains finding if {
	"network" in with_findings
	some finding in data.agenttool.rules.network.ask
}

asks contains finding if {
	"paths" in with_findings
	some finding in data.agenttool.rules.paths.ask
}

asks contains finding if {
	"roles" in with_findings
	some finding in data.agenttool.rules.roles.ask
}

asks contains finding if {
	"shell" in with_findings
	some finding in data.agenttool.rules.shell.ask
}

asks contains finding if {
	"sql" in with_findings
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
	some concern in with_findings
	not explained(concern)
}

explained(concern) if {
	prefix := concat("", ["agenttool.rules.", concern, "."])
	some finding in (asks | denials)
	startswith(finding.rule, prefix)
}
