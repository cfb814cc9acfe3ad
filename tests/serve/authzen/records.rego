# METADATA
# title: Who may do what with a record
# description: The fixture of the certification scenario of AuthZEN 1.0, on top of the stock policy.
package agenttool.custom.records

allow contains permitted("custom.records.read", "anybody may read a record") if input.tool.name == "read"

allow contains permitted("custom.records.own", "alice may write a record that is not archived") if {
	writing
	input.actor.id == "user:alice"
	not archived
}

allow contains permitted("custom.records.soft", "alice may remove a record that can be restored") if {
	input.tool.name == "delete"
	input.actor.id == "user:alice"
	input.resources.authzen.action.soft == true
}

allow contains permitted("custom.records.archived", "an administrator may write an archived record") if {
	writing
	archived
	input.resources.authzen.subject.role == "admin"
}

deny contains {"rule": "custom.records.others", "message": "nobody else may change a record"} if {
	input.tool.name in {"write", "delete"}
	count(allow) == 0
}

writing if input.tool.name == "write"

archived if input.input.status == "archived"

permitted(rule, message) := {
	"rule": rule,
	"message": message,
	"waives": ["agenttool.rules.declared.access_file_write", "agenttool.rules.declared.writes"],
}
