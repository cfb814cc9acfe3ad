# METADATA
# title: Releases and the network
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom.release


config := data.agenttool.custom.release.plan

# METADATA
# title: The change freeze
deny contains {"rule": "software.release.freeze", "message": "the freeze is on"} if {
	is_deploy(input.tool)
	date := substring(input.time, 0, 10)
	date >= config.freeze.from
	date <= config.freeze.to
}

is_deploy(tool) if startswith(tool.id, "deploy.")

is_deploy(tool) if {
	some alias in tool.aliases
	startswith(alias, "deploy_")
}

# METADATA
# title: Only owners deploy a service
ask contains {
	"rule": "software.release.owner",
	"message": "only an owner deploys this service",
	"suggested_updates": [],
} if {
	is_deploy(input.tool)
	service := object.get(input.input, ["target", "service"], "")
	owners := object.get(config.owners, service, [])
	roles := {role | some role in input.actor.roles}
	count(roles & {owner | some owner in owners}) == 0
}

# METADATA
# title: Hosts outside of the list
deny contains {"rule": "software.release.host", "message": "the host is not on the list"} if {
	some url in input.facts.urls
	not listed(url)
}

listed(url) if url.host in config.hosts

listed(url) if {
	some suffix in config.hosts
	startswith(suffix, ".")
	endswith(url.host, suffix)
}

# METADATA
# title: A command that deletes many files
ask contains {"rule": "software.release.many", "message": "many files at once"} if {
	some line in input.facts.shell
	deleted := [place.path.lexical |
		some command in line.commands
		command.category in {"deleter", "tree_deleter"}
		some place in command.places
		place.operation in ["delete", "delete_tree"]
	]
	count(deleted) > config.max_files
}

tier := "high" if {
	input.permission_profile.risk_level in {"high", "critical"}
} else := "remote" if {
	"remote_mutation" in input.permission_profile.write_effects
} else := "plain"

# METADATA
# title: Young sessions do nothing serious
ask contains {"rule": "software.release.young", "message": "the session is new"} if {
	tier != "plain"
	input.session.counters.calls + input.session.counters.asks < 3
	input.session.context == "stated"
	input.session.labels.trusted != "yes"
}

# METADATA
# title: Someone rejected it
deny contains {"rule": "software.release.rejected", "message": "a person rejected the call"} if {
	input.approval.status == "rejected"
	input.approval.answered_by != null
}
