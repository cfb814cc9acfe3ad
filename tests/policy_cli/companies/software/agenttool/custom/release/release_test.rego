package agenttool.custom_test.release

import data.agenttool.custom.release
import data.agenttool.lib.fixtures_test as f

deploy(changes) := f.changed(object.union(
	{
		"tool": {"id": "deploy.web", "namespace": "deploy", "name": "web"},
		"input": {"target": {"service": "web"}},
		"actor": {"roles": ["lead"]},
		"facts": {"paths": []},
	},
	changes,
))

asked(document) := names if {
	names := f.rules(release.ask) with input as document
}

denied(document) := names if {
	names := f.rules(release.deny) with input as document
}

test_the_freeze if {
	denied(deploy({"time": "2026-12-24T12:00:00Z"})) == {"software.release.freeze"}
	denied(deploy({})) == set()
	denied(f.changed({"time": "2026-12-24T12:00:00Z"})) == set()
}

test_owners if {
	asked(deploy({})) == set()
	asked(deploy({"actor": {"roles": ["staff"]}})) == {"software.release.owner"}
	asked(deploy({"input": {"target": "web"}})) == {"software.release.owner"}
}

test_hosts[host] if {
	some host, expected in {
		"registry.example.org": set(),
		"a.corp.example": set(),
		"corp.example": {"software.release.host"},
		"evil.example": {"software.release.host"},
	}
	denied(f.with_url({"host": host})) == expected
}

test_many_files if {
	place := {"word": "a", "operation": "delete", "covers": [], "path": f.path_fact}
	command := object.union(f.shell_fact.commands[0], {"category": "deleter", "places": [place, place, place, place]})
	asked(f.with_shell({"commands": [command]})) == {"software.release.many"}
}

test_young_sessions if {
	young := {"counters": {"calls": 0}, "labels": {"trusted": "no"}}
	asked(f.changed({"permission_profile": {"risk_level": "high"}, "session": young})) == {"software.release.young"}
	asked(f.changed({"session": young})) == set()
}

test_rejections if {
	denied(f.changed({"approval": object.union(f.approved, {"status": "rejected"})})) == {"software.release.rejected"}
}
