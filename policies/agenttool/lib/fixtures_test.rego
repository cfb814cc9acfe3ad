# METADATA
# title: Inputs for the tests of all packages
# description: |
#   A read-only file tool that reads inside the roots, and functions that change one thing about it.
# scope: package
package agenttool.lib.fixtures_test

path_fact := {
	"argument": "/path",
	"raw": "notes.txt",
	"access": "read",
	"lexical": "/proj/notes.txt",
	"resolved": "/proj/notes.txt",
	"roots": ["/proj"],
	"inside": true,
	"escapes": false,
	"exists": true,
	"symlink": false,
	"hard_links": 1,
	"parent_refs": false,
	"home": false,
	"variables": false,
	"encoded": false,
	"confusable": false,
	"windows": [],
	"sensitive": null,
	"rejected": null,
	"identity": "2049:7",
	"certain": true,
	"inferred": false,
}

url_fact := {
	"argument": "/url",
	"valid": true,
	"rejected": null,
	"scheme": "https",
	"host": "docs.example.org",
	"host_unicode": "docs.example.org",
	"port": 443,
	"path": "/",
	"credentials": false,
	"sensitive_query": false,
	"address": null,
	"address_class": "name",
	"resolved": [],
	"disagreement": false,
	"lookalike": null,
	"relay": false,
	"allowed_host": false,
	"certain": true,
	"inferred": false,
}

shell_fact := {
	"argument": "/command",
	"parsed": true,
	"unparsed": null,
	"read_only": true,
	"sensitive_read": false,
	"writes": false,
	"network": false,
	"connects": false,
	"executes": false,
	"destructive": false,
	"runs_download": false,
	"complete": true,
	"commands": [{
		"name": "ls",
		"argv": ["ls", "-l", "src"],
		"spellings": [["ls", "-l", "src"]],
		"plain": ["ls", "-l", "src"],
		"repository": null,
		"carries": false,
		"assignments": [],
		"redirects": [],
		"category": "reader",
		"directory": "/proj",
		"places": [{
			"word": "src",
			"operation": "list",
			"covers": [],
			"path": object.union(path_fact, {"argument": "/command", "raw": "src", "lexical": "/proj/src", "resolved": "/proj/src"}),
		}],
		"complete": true,
		"unreviewed": [],
		"read_only": true,
		"reason": "lists files",
	}],
	"inferred": false,
}

sql_fact := {
	"argument": "/query",
	"parsed": true,
	"unparsed": null,
	"dialect": "sqlite",
	"statements": ["select"],
	"read_only": true,
	"multiple": false,
	"ddl": false,
	"tables_read": ["orders"],
	"tables_written": [],
	"unbounded_write": false,
	"comments": false,
	"inferred": false,
}

base := {
	"schema_version": "0.2.0",
	"time": "2026-11-21T12:00:00Z",
	"invocation": {"id": "inv_1", "native_call_id": null, "attempt": 1, "resumed": false, "preflight": false},
	"tool": {
		"id": "local.files.read_file",
		"namespace": "local.files",
		"name": "read_file",
		"aliases": [],
		"kind": "file_operation",
		"lifecycle": "available",
		"ownership": "custom",
		"read_only": true,
		"destructive": false,
		"open_world": false,
		"concurrency_safe": true,
		"requires_user_interaction": false,
		"inferred": [],
		"capability_refs": [],
	},
	"permission_profile": {
		"risk_level": "low",
		"access_kinds": ["file_read"],
		"write_effects": [],
		"network_scope": null,
		"tenant_scope": null,
		"credential_refs": [],
		"sandbox_profile": null,
		"approval_required": false,
		"approval_reason": null,
		"prompt_avoidable": false,
		"data_sensitivity": null,
		"redaction_required": false,
	},
	"input": {"path": "notes.txt"},
	"facts": {"paths": [path_fact], "urls": [], "shell": [], "sql": [], "provenance": {}, "traced": true, "aimed": true, "intent": null, "approved": []},
	"actor": {"id": "agent:support", "kind": "agent", "roles": ["reader"], "tenant": "acme"},
	"session": {
		"id": "s-1",
		"context": "stated",
		"mode": "default",
		"interactive": true,
		"roots": ["/proj"],
		"counters": {"calls": 3, "tool_calls": 1, "asks": 0, "denials": 0, "result_bytes": 100},
		"labels": {},
		"history": [],
		"history_complete": true,
	},
	"approval": null,
	"hooks": [],
	"evaluation": null,
	"resources": {},
	"execution": {"sandboxes": [], "scope": "thread"},
}

approved := {
	"request_id": "appr_1", "status": "approved", "answered_by": "user:ann", "roles": ["lead"], "granted": false,
}

# METADATA
# title: The base input with members replaced
changed(changes) := object.union(base, changes)

with_path(changes) := changed({"facts": {"paths": [object.union(path_fact, changes)]}})

with_url(changes) := changed({
	"tool": {"id": "web.fetch", "namespace": "web", "name": "fetch", "kind": "function", "open_world": true},
	"permission_profile": {"access_kinds": ["network"]},
	"input": {"url": "https://docs.example.org/"},
	"facts": {"paths": [], "urls": [object.union(url_fact, changes)]},
})

with_shell(changes) := changed({
	"tool": {
		"id": "shell.run",
		"namespace": "shell",
		"name": "run",
		"kind": "shell_command",
		"read_only": false,
		"open_world": true,
		"inferred": ["read_only"],
	},
	"permission_profile": {
		"risk_level": "medium",
		"access_kinds": ["code_execution"],
		"write_effects": ["local_persistent"],
	},
	"input": {"command": "ls -l src"},
	"facts": {"paths": [], "shell": [object.union(shell_fact, changes)]},
})

with_sql(changes) := changed({
	"tool": {"id": "db.query", "namespace": "db", "name": "query", "kind": "function", "read_only": false},
	"permission_profile": {"access_kinds": [], "write_effects": ["remote_mutation"]},
	"input": {"query": "select 1"},
	"facts": {"paths": [], "sql": [object.union(sql_fact, changes)]},
})

writing := object.union(
	with_path({"access": "write"}),
	{
		"tool": {"id": "local.files.write_file", "name": "write_file", "read_only": false},
		"permission_profile": {"access_kinds": ["file_write"], "write_effects": ["local_persistent"]},
	},
)

# METADATA
# title: Where a value came from, of a target that only untrusted output has
value_fact := {
	"sources": ["tool:web.fetch"],
	"untrusted": true,
	"certain": true,
	"trust": "free_text",
	"role": "target",
	"seen_in": [],
	"link": false,
	"extended": false,
	"made_up_id": false,
	"private": [],
	"broken": false,
	"sourced": "unstated",
	"allowed": [],
}

# METADATA
# title: Every input that lacks one of the members
missing(document, pointers) := {json.patch(document, [{"op": "remove", "path": pointer}]) | some pointer in pointers}

# METADATA
# title: Every input that has a value of another type at one of the members
mistyped(document, pointers, values) := {json.patch(document, [{"op": "replace", "path": pointer, "value": value}]) |
	some pointer in pointers
	some value in values
}

# METADATA
# title: The base input with members that no rule knows
extended := object.union(base, {
	"extra": {"behavior": "deny"},
	"tool": {"extra": true},
	"permission_profile": {"extra": [1]},
	"actor": {"extra": "x"},
	"session": {"extra": null, "counters": {"extra": "many"}},
	"facts": {"extra": [{}], "paths": [object.union(path_fact, {"extra": "x"})]},
})

# METADATA
# title: Names of the rules in a set of findings
rules(findings) := {finding.rule | some finding in findings}
