package agenttool.permission

# METADATA
# title: Every concern is clear
all_clear(c) if {
	data.agenttool.rules.declared.clear(c)
	data.agenttool.rules.approval.clear(c)
	data.agenttool.rules.paths.clear(c)
	data.agenttool.rules.shell.clear(c)
	data.agenttool.rules.network.clear(c)
	data.agenttool.rules.sql.clear(c)
	data.agenttool.rules.dataflow.clear(c)
	data.agenttool.rules.destructive.clear(c)
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
questions contains finding if {
	"approval" in unclear
	some finding in data.agenttool.rules.approval.ask
}

questions contains finding if {
	"dataflow" in unclear
	some finding in data.agenttool.rules.dataflow.ask
}

questions contains finding if {
	"declared" in unclear
	some finding in data.agenttool.rules.declared.ask
}

questions contains finding if {
	"destructive" in unclear
	some finding in data.agenttool.rules.destructive.ask
}

questions contains finding if {
	"network" in unclear
	some finding in data.agenttool.rules.network.ask
}

questions contains finding if {
	"paths" in unclear
	some finding in data.agenttool.rules.paths.ask
}

questions contains finding if {
	"roles" in unclear
	some finding in data.agenttool.rules.roles.ask
}

questions contains finding if {
	"shell" in unclear
	some finding in data.agenttool.rules.shell.ask
}

questions contains finding if {
	"sql" in unclear
	some finding in data.agenttool.rules.sql.ask
}

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
	not concern in explained
}

explained contains "approval" if count(data.agenttool.rules.approval.deny) > 0

explained contains "approval" if count(data.agenttool.rules.approval.ask) > 0

explained contains "budgets" if count(data.agenttool.rules.budgets.deny) > 0

explained contains "dataflow" if count(data.agenttool.rules.dataflow.ask) > 0

explained contains "declared" if count(data.agenttool.rules.declared.deny) > 0

explained contains "declared" if count(data.agenttool.rules.declared.ask) > 0

explained contains "destructive" if count(data.agenttool.rules.destructive.deny) > 0

explained contains "destructive" if count(data.agenttool.rules.destructive.ask) > 0

explained contains "evaluation" if count(data.agenttool.rules.evaluation.deny) > 0

explained contains "network" if count(data.agenttool.rules.network.deny) > 0

explained contains "network" if count(data.agenttool.rules.network.ask) > 0

explained contains "paths" if count(data.agenttool.rules.paths.deny) > 0

explained contains "paths" if count(data.agenttool.rules.paths.ask) > 0

explained contains "roles" if count(data.agenttool.rules.roles.ask) > 0

explained contains "shell" if count(data.agenttool.rules.shell.deny) > 0

explained contains "shell" if count(data.agenttool.rules.shell.ask) > 0

explained contains "sql" if count(data.agenttool.rules.sql.deny) > 0

explained contains "sql" if count(data.agenttool.rules.sql.ask) > 0

explained contains "tenancy" if count(data.agenttool.rules.tenancy.deny) > 0
