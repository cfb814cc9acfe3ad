package agenttool.rules.effects_test

import data.agenttool.lib.fixtures_test as f
import data.agenttool.rules.effects as rules

path := object.union(f.path_fact, {"access": "write", "argument": "/command"})

# METADATA
# title: One changed path
effect(changes) := object.union(
	object.union(path, {"operation": "changed", "kind": "file", "executable": false, "noise": false, "below": 0}),
	changes,
)

counts := {"created": 0, "changed": 0, "deleted": 0, "mode": 0, "owner": 0, "linked": 0, "connections": 0, "reported": 0}

effects(paths, changes) := object.union(
	{
		"counts": counts,
		"paths": paths,
		"connections": [],
		"changes": [],
		"complete": true,
		"reasons": [],
		"commands": [{"exit_code": 0, "timed_out": false}],
		"digest": "ab",
	},
	changes,
)

# METADATA
# title: The input of a second decision
after(paths, changes) := object.union(f.with_shell({}), {
	"facts": {
		"shell": [],
		"paths": [object.remove(entry, ["operation", "kind", "executable", "noise", "below"]) | some entry in paths],
		"effects": effects(paths, changes),
	},
	"execution": {"sandboxes": ["read", "rehearse"], "scope": "thread"},
})

asked(document) := found if {
	found := f.rules(rules.ask) with input as document
}

denied(document) := found if {
	found := f.rules(rules.deny) with input as document
}

test_without_effects_there_is_nothing_to_find if {
	rules.clear with input as f.base
	asked(f.base) == set()
	denied(f.base) == set()
}

test_harmless_effects_are_clear if {
	rules.clear with input as after([effect({})], {"counts": {"changed": 1}})
}

test_many_deletions_are_asked_about[name] if {
	some name, document in {
		"counted": after([], {"counts": {"deleted": 21}}),
		"listed": after(deleted(21, false), {}),
	}
	asked(document) == {"agenttool.rules.effects.deletions"}
	not rules.clear with input as document
}

test_few_deletions_and_caches_are_not[name] if {
	some name, document in {
		"counted": after([], {"counts": {"deleted": 20}}),
		"listed": after(deleted(20, false), {}),
		"a cache": after(deleted(21, true), {}),
	}
	rules.clear with input as document
}

deleted(size, noise) := [entry |
	some number in numbers.range(1, 21)
	number <= size
	entry := effect({"operation": "deleted", "noise": noise, "lexical": sprintf("/proj/f%d", [number])})
]

test_the_number_is_a_setting if {
	document := after([], {"counts": {"deleted": 2}})
	settings := {"rehearsal": {"max_deleted": 1}}
	found := f.rules(rules.ask) with input as document with data.agenttool.settings as settings
	found == {"agenttool.rules.effects.deletions"}
}

test_without_a_usable_number_every_deletion_is_asked_about if {
	document := after([], {"counts": {"deleted": 2}})
	found := f.rules(rules.ask) with input as document with data.agenttool.settings as {"rehearsal": {"max_deleted": null}}
	found == {"agenttool.rules.effects.deletions"}
}

test_files_that_run_later_are_asked_about[place] if {
	some place in ["/proj/.github/workflows/ci.yml", "/proj/Jenkinsfile", "/proj/.envrc", "/proj/lib/a.pth", "/proj/.HUSKY/x"]
	document := after([effect({"lexical": place})], {})
	asked(document) == {"agenttool.rules.effects.runs_later"}
	not rules.clear with input as document
}

test_other_files_and_their_removal_are_not[name] if {
	some name, entry in {
		"a module": effect({"lexical": "/proj/src/github.py"}),
		"removed": effect({"lexical": "/proj/.envrc", "operation": "deleted"}),
	}
	rules.clear with input as after([entry], {})
}

test_another_owner_is_asked_about if {
	document := after([effect({"operation": "owner"})], {"counts": {"owner": 1}})
	asked(document) == {"agenttool.rules.effects.owner"}
	not rules.clear with input as document
}

test_attempts_to_connect_are_asked_about[name] if {
	some name, changes in {
		"listed": {"connections": [{"host": "192.0.2.1", "port": 443, "family": "inet", "attempts": 1}]},
		"counted": {"counts": {"connections": 1}},
	}
	document := after([], changes)
	asked(document) == {"agenttool.rules.effects.connections"}
	not rules.clear with input as document
}

test_effects_that_are_not_all_known_are_denied if {
	document := after([], {"complete": false})
	denied(document) == {"agenttool.rules.effects.incomplete"}
	not rules.clear with input as document
}

test_missing_members_are_denied if {
	every document in f.missing(after([effect({})], {}), [
		"/facts/effects/complete",
		"/facts/effects/paths",
		"/facts/effects/connections",
		"/facts/effects/counts",
		"/facts/effects/counts/deleted",
		"/facts/effects/counts/owner",
		"/facts/effects/counts/connections",
		"/facts/effects/paths/0/lexical",
		"/facts/effects/paths/0/operation",
		"/facts/effects/paths/0/noise",
	]) {
		"agenttool.rules.effects.unusable" in denied(document)
		not rules.clear with input as document
	}
}

test_members_of_another_type_are_denied if {
	every document in f.mistyped(
		after([effect({})], {}),
		["/facts/effects/complete", "/facts/effects/paths", "/facts/effects/counts/deleted", "/facts/effects/paths/0/noise"],
		[null, "1", {"a": 1}],
	) {
		"agenttool.rules.effects.unusable" in denied(document)
		not rules.clear with input as document
	}
}

test_members_that_no_rule_knows_change_nothing if {
	rules.clear with input as after([effect({"extra": 1})], {"extra": {"deny": true}})
}

# METADATA
# title: A second decision on what a tool reports
reporting(count_) := after([], {"counts": {"reported": count_}})

test_a_hundred_reported_rows_are_silent if {
	count(rules.ask) == 0 with input as reporting(100)
	rules.clear with input as reporting(100)
}

test_more_reported_rows_are_asked_about if {
	some finding in rules.ask with input as reporting(101)
	finding.rule == "agenttool.rules.effects.reported"
	not rules.clear with input as reporting(101)
}

test_reported_counts_of_the_wrong_type_are_denied if {
	some finding in rules.deny with input as reporting("1")
	finding.rule == "agenttool.rules.effects.unusable"
	some other in rules.deny with input as reporting(null)
	other.rule == "agenttool.rules.effects.unusable"
}
