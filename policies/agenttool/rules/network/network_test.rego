package agenttool.rules.network_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.network.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.network.deny)

asked := f.rules(data.agenttool.rules.network.ask)

name(rule) := concat(".", ["agenttool.rules.network", rule])

test_a_public_host_is_clear if {
	no_findings with input as f.with_url({})
	asked == set() with input as f.with_url({})
	denied == set() with input as f.with_url({})
	data.agenttool.rules.network.allow == {data.agenttool.rules.network.allowed} with input as f.with_url({})
}

test_no_urls_are_clear if {
	no_findings with input as f.base
	data.agenttool.rules.network.allow == set() with input as f.base
}

no_url(value) := object.union(
	f.changed({"facts": {"paths": [], "urls": []}, "permission_profile": {"access_kinds": ["network"]}}),
	{"tool": {"kind": "function"}, "input": {"target": value, "path": "x"}},
)

test_a_connecting_tool_without_urls_is_clear[index] if {
	some index, value in ["weather in Rome", "see https://example.org for more", 7]
	no_findings with input as no_url(value)
	asked == set() with input as no_url(value)
}

test_a_connecting_tool_whose_url_is_in_an_unknown_argument_is_asked[value] if {
	some value in ["http://169.254.169.254/latest/", "//evil.example/x", ["x", "ftp://a"]]
	not no_findings with input as no_url(value)
	asked == {name("undeclared")} with input as no_url(value)
}

test_other_tools_may_have_texts_with_urls if {
	no_findings with input as object.union(no_url("http://a/"), {"permission_profile": {"access_kinds": ["file_read"]}})
}

test_access_kinds_or_arguments_of_another_type_tell_nothing[index] if {
	some index, value in [7, null, "file_read", [7]]
	asking := no_url("http://a/")
	not no_findings with input as json.patch(
		asking,
		[{"op": "replace", "path": "/permission_profile/access_kinds", "value": value}],
	)
	not no_findings with input as object.union(
		json.patch(asking, [{"op": "replace", "path": "/input", "value": value}]),
		{"permission_profile": {"access_kinds": ["network"]}},
	)
}

test_a_host_that_resolves_to_public_addresses_is_clear if {
	no_findings with input as f.with_url({"resolved": [{"address": "93.184.216.34", "address_class": "public"}]})
}

test_addresses_that_may_not_be_reached_are_denied[class] if {
	some class in [
		"loopback",
		"private",
		"link_local",
		"metadata",
		"reserved",
		"multicast",
		"unspecified",
		"something new",
	]
	document := f.with_url({"address_class": class})
	not no_findings with input as document
	denied == {name("address")} with input as document
}

test_a_name_that_resolves_to_a_private_address_is_denied if {
	document := f.with_url({"resolved": [
		{"address": "93.184.216.34", "address_class": "public"},
		{"address": "10.0.0.1", "address_class": "private"},
	]})
	not no_findings with input as document
	denied == {name("address")} with input as document
}

listed(hosts) := {"network": {"allowed_hosts": hosts}}

local_host := f.with_url({"host": "localhost", "address_class": "loopback", "port": 8765, "scheme": "http"})

test_a_listed_host_may_be_local[entry] if {
	some entry in ["localhost", "localhost:8765"]
	no_findings with input as local_host with data.agenttool.settings as listed([entry])
}

test_an_entry_for_another_port_lists_nothing if {
	not no_findings with input as local_host with data.agenttool.settings as listed(["localhost:80"])
	name("address") in denied with input as local_host with data.agenttool.settings as listed(["localhost:80"])
}

test_a_session_label_lists_hosts if {
	labelled := object.union(local_host, {"session": {"labels": {"allowed_hosts": "a.example, localhost:8765"}}})
	no_findings with input as labelled
	not no_findings with input as object.union(local_host, {"session": {"labels": {"allowed_hosts": 7}}})
}

test_a_glob_lists_whole_labels if {
	inside := f.with_url({"host": "git.corp.example", "address_class": "private"})
	no_findings with input as inside with data.agenttool.settings as listed(["*.corp.example"])
	not no_findings with input as f.with_url({
		"host": "evilcorp.example",
		"address_class": "private",
	})
		with data.agenttool.settings as listed(["*.corp.example"])
}

test_a_list_never_opens_special_addresses[class] if {
	some class in ["metadata", "link_local"]
	document := f.with_url({"host": "metadata.internal", "address_class": class})
	denied == {name("address")} with input as document with data.agenttool.settings as listed(["metadata.internal"])
}

test_unusable_urls_are_denied[index] if {
	some index, change in [{"valid": false}, {"rejected": "control"}]
	document := f.with_url(change)
	not no_findings with input as document
	denied == {name("invalid")} with input as document
}

test_a_disagreement_is_denied if {
	document := f.with_url({"disagreement": true})
	not no_findings with input as document
	denied == {name("disagreement")} with input as document
}

test_other_schemes_are_denied[scheme] if {
	some scheme in ["file", "gopher", "data", "javascript", ""]
	document := f.with_url({"scheme": scheme})
	not no_findings with input as document
	denied == {name("scheme")} with input as document
}

test_some_schemes_are_asked if {
	not no_findings with input as f.with_url({"scheme": "ftp"})
	asked == {name("unusual_scheme")} with input as f.with_url({"scheme": "ftp"})
}

test_a_lookalike_is_asked if {
	not no_findings with input as f.with_url({"lookalike": "github.com"})
	asked == {name("lookalike")} with input as f.with_url({"lookalike": "github.com"})
}

test_uncertainty_is_asked[index] if {
	some index, change in [{"certain": false}, {"host": ""}]
	not no_findings with input as f.with_url(change)
	asked == {name("uncertain")} with input as f.with_url(change)
}

test_unusual_ports_are_asked if {
	document := f.with_url({"port": 22})
	not no_findings with input as document
	asked == {name("port")} with input as document
	no_findings with input as document with data.agenttool.settings as listed(["docs.example.org"])
	no_findings with input as document with data.agenttool.settings as {"network": {"ports": null}}
}

test_credentials_are_asked_about_carried_or_denied if {
	document := f.with_url({"credentials": true, "sensitive_query": true})
	not no_findings with input as document
	asked == {name("carries_credentials")} with input as document
	denied == set() with input as document
	no_findings with input as f.with_url({"sensitive_query": true})
	no_findings with input as document with data.agenttool.settings as {"network": {"credentials_in_url": "redact"}}
	strict := {"network": {"credentials_in_url": "deny"}}
	not no_findings with input as document with data.agenttool.settings as strict
	denied == {name("credentials")} with input as document with data.agenttool.settings as strict
}

test_only_listed_hosts_where_the_configuration_says_so if {
	settings := {"network": {"listed_only": true, "allowed_hosts": ["a.example"]}}
	asked == {name("unlisted")} with input as f.with_url({}) with data.agenttool.settings as settings
	no_findings with input as f.with_url({"host": "a.example"}) with data.agenttool.settings as settings
}

test_blocked_hosts_are_denied if {
	settings := {"network": {"blocked_hosts": ["docs.example.org", "*.bad.example"]}}
	denied == {name("blocked_host")} with input as f.with_url({}) with data.agenttool.settings as settings
	denied == {name("blocked_host")} with input as f.with_url({
		"host": "a.bad.example",
	})
		with data.agenttool.settings as settings
	no_findings with input as f.with_url({"host": "good.example"}) with data.agenttool.settings as settings
}

test_a_host_that_passes_on_is_asked_unless_it_is_listed if {
	document := f.with_url({"relay": true})
	asked == {name("relay")} with input as document
	no_findings with input as document with data.agenttool.settings as {"network": {"allowed_hosts": ["docs.example.org"]}}
}

test_facts_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, {}]
	document := json.patch(f.base, [{"op": "replace", "path": "/facts/urls", "value": value}])
	not no_findings with input as document
	asked == {name("unproven")} with input as document
}

members := [
	"/facts/urls/0/valid",
	"/facts/urls/0/rejected",
	"/facts/urls/0/scheme",
	"/facts/urls/0/host",
	"/facts/urls/0/port",
	"/facts/urls/0/credentials",
	"/facts/urls/0/sensitive_query",
	"/facts/urls/0/address_class",
	"/facts/urls/0/resolved",
	"/facts/urls/0/disagreement",
	"/facts/urls/0/lookalike",
	"/facts/urls/0/relay",
	"/facts/urls/0/certain",
	"/facts/urls",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.with_url({}), members)
		no_findings with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(f.with_url({}), members)
		count(asked | denied) == 0 with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(f.with_url({}), members, [7, [7], {"x": 1}, true])
		not document.facts.urls[0].valid == true
		no_findings with input as document
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.with_url({"extra": "metadata"})
