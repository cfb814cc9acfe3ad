package agenttool.lib.names_test

import data.agenttool.lib.fixtures_test as f

tool := f.changed({"tool": {"id": "t-1", "namespace": "local.files", "name": "read", "aliases": ["cat"]}})

test_lists_that_permit_take_id_and_full_name[pattern] if {
	some pattern in ["t-1", "local.files.read", "local.*", "*"]
	data.agenttool.lib.is_exactly(pattern) with input as tool
}

test_lists_that_permit_take_no_other_name[pattern] if {
	some pattern in ["read", "cat", "t-2", "local.files"]
	not data.agenttool.lib.is_exactly(pattern) with input as tool
}

test_lists_that_restrict_take_every_name[pattern] if {
	some pattern in ["t-1", "local.files.read", "read", "cat", "c?t"]
	data.agenttool.lib.is_called(pattern) with input as tool
	not data.agenttool.lib.is_not_called(pattern) with input as tool
}

test_another_name_is_not_the_tools[pattern] if {
	some pattern in ["t-2", "write", "local.files.write"]
	not data.agenttool.lib.is_called(pattern) with input as tool
	data.agenttool.lib.is_not_called(pattern) with input as tool
}

test_an_empty_list_names_nothing if data.agenttool.lib.none_called([]) with input as tool

test_a_list_names_the_tool_or_not if {
	data.agenttool.lib.none_called(["web.*", "x"]) with input as tool
	not data.agenttool.lib.none_called(["web.*", "read"]) with input as tool
}

test_what_is_no_list_names_nothing_for_sure[index] if {
	some index, patterns in ["x", 7, null, {}]
	not data.agenttool.lib.none_called(patterns) with input as tool
}

test_a_tool_has_names_of_the_right_types if {
	data.agenttool.lib.identified with input as tool
	{document |
		some document in f.mistyped(tool, ["/tool/id", "/tool/namespace", "/tool/name", "/tool/aliases"], [7, [7], null])
		data.agenttool.lib.identified with input as document
	} == set()
}

test_the_texts_of_a_call_are_found_four_levels_deep if {
	document := f.changed({"input": {"path": "a", "b": ["c", {"d": "e", "f": [{"g": "h"}, "i", 7]}], "j": null, "k": 7}})
	data.agenttool.lib.texts == {"a", "c", "e", "i"} with input as document
	data.agenttool.lib.texts == set() with input as json.patch(
		document,
		[{"op": "replace", "path": "/input", "value": 7}],
	)
}
