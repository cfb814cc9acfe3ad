package agenttool.custom_test.records

import data.agenttool.custom.records
import data.agenttool.lib.fixtures_test as f

record(ward, actor) := f.changed({
	"tool": {"id": "records.find", "namespace": "records", "name": "find", "kind": "retrieval"},
	"actor": {"id": actor},
	"resources": {"patient": {"ward": ward}},
	"facts": {"paths": []},
})

test_nurses_see_their_own_ward if {
	count(records.deny) == 0 with input as record("north", "user:ann")
	f.rules(records.deny) == {"hospital.records.other_ward"} with input as record("south", "user:ann")
}

test_a_patient_without_a_ward_is_nobodys if {
	f.rules(records.deny) == {"hospital.records.other_ward"} with input as record(null, "user:ann")
}

test_tables if {
	f.rules(records.deny) == {"hospital.records.forbidden_table"} with input as f.with_sql({"tables_read": ["passwords"]})
	records.deny == set() with input as f.with_sql({})
}

test_the_unknown_is_serious if {
	data.agenttool.custom.lib.severity({"risk_level": "odd"}) == 3
	count(records.ask) == 1 with input as f.changed({"permission_profile": {"risk_level": "critical"}})
}

test_pictures if {
	picture := object.union(f.with_path({"lexical": "/proj/x_1.png", "access": "write"}), {"actor": {"roles": ["radiologist"]}})
	f.rules(records.allow) == {"hospital.records.pictures"} with input as picture
	records.allow == set() with input as f.with_path({"lexical": "/proj/x.sh"})
}

test_nothing_is_sent_twice if {
	entry := {"tool": "mail.send", "outcome": "succeeded", "targets": [], "same": ["/patient"]}
	document := f.changed({
		"tool": {"id": "mail.send", "namespace": "mail", "name": "send"},
		"permission_profile": {"access_kinds": ["external_send"]},
		"session": {"history": [entry]},
	})
	"hospital.records.sent_twice" in f.rules(records.deny) with input as document
}

test_letters if {
	fact := object.union(f.value_fact, {"trust": "free_text"})
	document := f.changed({"facts": {"provenance": {"/patient": fact}}, "input": {"kind": ["Letter"], "patient": "x"}})
	f.rules(records.ask) == {"hospital.records.letter"} with input as document
}
