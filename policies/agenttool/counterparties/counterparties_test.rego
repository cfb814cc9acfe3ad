package agenttool.counterparties.counterparties_test

import data.agenttool.lib.fixtures_test as f

paying := f.changed({
	"tool": {"id": "bank.pay", "namespace": "bank", "name": "pay", "read_only": false},
	"input": {"iban": "DE89 3704 0044 0532 0130 00", "cc": ["Ann@Example.org", "x@evil.test"], "a/b": "ann"},
})

c(changes) := {"counterparties": object.union(data.agenttool.defaults.counterparties, changes)}

fact(sources, untrusted) := {
	"sources": sources,
	"untrusted": untrusted,
	"certain": true,
	"sourced": "unstated",
	"allowed": [],
}

known(settings, pointer, given) if {
	data.agenttool.counterparties.known(c(settings), pointer, given) with input as paying
		with data.agenttool.settings as {"counterparties": settings}
}

outside := fact(["tool:web.fetch"], true)

test_nothing_is_known_without_settings if not known({}, "/iban", outside)

test_a_listed_account_is_known_however_it_is_written if {
	known({"known": ["de89370400440532013000"]}, "/iban", outside)
	known({"own": ["DE89 3704 0044 0532 0130 00"]}, "/iban", outside)
	not known({"known": ["de89370400440532013001"]}, "/iban", outside)
}

test_a_domain_stands_for_its_addresses if {
	known({"known": ["@example.org"]}, "/cc/0", outside)
	not known({"known": ["@example.org"]}, "/cc/1", outside)
	not known({"known": ["@example.org"]}, "/iban", outside)
}

test_a_list_of_addresses_is_no_address if {
	not data.agenttool.counterparties.same("@example.org", "x@evil.test,ann@example.org")
	not data.agenttool.counterparties.same("@example.org", "x@evil.test ann@example.org")
	not data.agenttool.counterparties.same("@example.org", "x@evil.test@example.org")
}

test_pointers_are_read_with_their_escapes if known({"known": ["ANN"]}, "/a~1b", outside)

test_what_a_declared_tool_told_is_known if {
	known({"source_tools": ["book.*"]}, "/iban", fact(["tool:book.list", "user"], false))
	known({"source_tools": ["book.*"]}, "/iban", fact(["tool:book.list"], true))
	not known({"source_tools": ["book.*"]}, "/iban", fact(["tool:book.list", "tool:web.fetch"], true))
	not known({"source_tools": ["book.*"]}, "/iban", fact(["tool:book.list", "unknown"], false))
	not known({"source_tools": ["book.*"]}, "/iban", outside)
	not known({"source_tools": ["book.*"]}, "/iban", fact([], true))
}

test_what_a_person_approved_is_known_unless_switched_off if {
	document := object.union(paying, {"facts": {"approved": ["/iban"]}})
	data.agenttool.counterparties.approved(c({}), "/iban") with input as document
	data.agenttool.counterparties.known(c({}), "/iban", outside) with input as document
	not data.agenttool.counterparties.approved(c({}), "/cc/0") with input as document
	not data.agenttool.counterparties.approved(c({"approved": false}), "/iban") with input as document
}

test_own_accounts_are_told_from_contacts if {
	settings := {"own": ["DE89370400440532013000"], "known": ["@example.org"]}
	data.agenttool.counterparties.own(c(settings), "/iban") with input as paying
		with data.agenttool.settings as {"counterparties": settings}
	not data.agenttool.counterparties.own(c(settings), "/cc/0") with input as paying
		with data.agenttool.settings as {"counterparties": settings}
}

test_stated_sources_have_to_let_it_be_a_counterparty if {
	stated := {"sourced": "other", "allowed": ["user", "counterparties"]}
	known({"known": ["de89370400440532013000"]}, "/iban", object.union(outside, stated))
	not known({"known": ["de89370400440532013000"]}, "/iban", object.union(outside, {"sourced": "other", "allowed": ["user"]}))
	not known({"known": ["de89370400440532013000"]}, "/iban", object.remove(outside, ["sourced"]))
}
