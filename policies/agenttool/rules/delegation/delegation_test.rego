package agenttool.rules.delegation_test

import data.agenttool.lib.fixtures_test as f
import data.agenttool.rules.delegation as rules

parent := {"id": "agent:lead", "kind": "agent", "roles": ["reader", "writer"], "tenant": "acme", "mode": "default", "roots": ["/proj"]}

by(chain) := f.changed({"actor": {"chain": chain}})

from(changes) := by([object.union(parent, changes)])

denied(document) if count(rules.deny) == 1 with input as document

is_clear(document) if {
	rules.clear with input as document
	count(rules.deny) == 0 with input as document
}

test_a_call_that_nobody_delegated_is_clear if is_clear(f.base)

test_a_narrower_child_is_clear[name] if {
	some name, document in {
		"the same": from({}),
		"fewer roles": from({"roles": ["reader"]}),
		"a wider root": from({"roots": ["/other", "/"]}),
		"an empty chain": by([]),
		"no roots": object.union(from({"roots": []}), {"session": {"roots": []}}),
	}
	is_clear(document)
}

test_a_wider_child_is_denied[name] if {
	some name, document in {
		"a role": from({"roles": ["writer"]}),
		"another tenant": from({"tenant": "umbrella"}),
		"no tenant": from({"tenant": null}),
		"another mode": from({"mode": "strict"}),
		"another root": from({"roots": ["/other"]}),
		"no roots": object.union(from({}), {"session": {"roots": []}}),
		"roots of its own": from({"roots": []}),
		"a root of a like name": from({"roots": ["/pro"]}),
		"a root beside": object.union(from({}), {"session": {"roots": ["/proj/../etc"]}}),
		"the first of two": by([object.union(parent, {"roles": []}), parent]),
	}
	denied(document)
	not rules.clear with input as document
}

test_a_chain_that_can_not_be_read_is_denied[index] if {
	some index, chain in [null, false, 7, "agent:lead", {}, [null], [{}], [object.union(parent, {"roles": "reader"})]]
	denied(by(chain))
	not rules.clear with input as by(chain)
}

members := ["/actor/roles", "/actor/tenant", "/session/mode", "/session/roots"]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(from({}), members)
		rules.clear with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(from({}), members)
		count(rules.deny) == 0 with input as document
	} == set()
}
