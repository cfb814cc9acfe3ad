# METADATA
# title: Patients' records
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom.records


import data.agenttool.custom.lib

# METADATA
# title: Records of another ward
deny contains {
	"rule": "hospital.records.other_ward",
	"message": "the record belongs to another ward",
} if {
	reads_records
	not own_ward
}

reads_records if {
	input.tool.namespace == "records"
	input.tool.kind in {"retrieval", "function", "mcp_tool"}
}

own_ward if {
	ward := input.resources.patient.ward
	nurses := data.agenttool.custom.wards[ward]
	some nurse in nurses
	input.actor.id == concat(":", ["user", nurse])
}

# METADATA
# title: A serious tool needs a doctor
ask contains {
	"rule": "hospital.records.doctor",
	"message": "a doctor has to agree",
} if {
	lib.severity(input.permission_profile) >= 2
	not lib.has_role(input.actor, "doctor")
}

# METADATA
# title: Forbidden tables
deny contains finding if {
	some fact in input.facts.sql
	touched := {table | some table in array.concat(fact.tables_read, fact.tables_written)}
	forbidden := {table | some table in data.agenttool.custom.tables.forbidden}
	count(touched & forbidden) > 0
	finding := {"rule": "hospital.records.forbidden_table", "message": "the table is not for agents"}
}

# METADATA
# title: X-ray pictures may be written into the ward's folder
allow contains {
	"rule": "hospital.records.pictures",
	"message": "pictures of the ward's own folder",
	"waives": ["agenttool.rules.paths.write_inside"],
} if {
	lib.has_role(input.actor, "radiologist")
	input.facts.paths != []
	every fact in input.facts.paths {
		is_picture(fact)
	}
}

is_picture(fact) if {
	fact.certain
	fact.inside
	fact.sensitive == null
	regex.match(`^[a-z0-9_]+\.(png|dcm)$`, lib.basename(fact.lexical))
}

# METADATA
# title: The same patient was sent out before
deny contains {"rule": "hospital.records.sent_twice", "message": "it was sent before", "type": "rule"} if {
	"external_send" in input.permission_profile.access_kinds
	earlier := [entry |
		some entry in input.session.history
		entry.outcome == "succeeded"
		entry.tool == input.tool.id
		"/patient" in entry.same
	]
	count(earlier) > 0
}

# METADATA
# title: A name that was only read from a letter
ask contains {"rule": "hospital.records.letter", "message": "the name stands in a letter alone"} if {
	fact := input.facts.provenance["/patient"]
	fact.trust in {"free_text", "unknown"}
	lib.normal(input.input.kind) == "letter"
}
