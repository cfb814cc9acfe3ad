# METADATA
# title: What a body would change
# description: |
#   Only after a rehearsal, or where the body of a tool reports what it is about to do. Where its effects lie is
#   judged by agenttool.rules.paths. Here: effects that are not all known are denied, as they can't be kept; many
#   deletions, rows or messages, files that run later, other owners and attempts to reach the network are asked about.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.effects

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if not present

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: There are effects, of whatever type
present if count([input.facts.effects]) == 1

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	usable
	input.facts.effects.complete == true
	deletions <= c.rehearsal.max_deleted
	input.facts.effects.counts.reported <= c.rehearsal.max_reported
	input.facts.effects.counts.owner == 0
	input.facts.effects.counts.connections == 0
	input.facts.effects.connections == []
	count(later_paths(c)) == 0
}

# METADATA
# title: The effects have the types that they should have
usable if {
	is_boolean(input.facts.effects.complete)
	is_array(input.facts.effects.paths)
	is_array(input.facts.effects.connections)
	is_number(input.facts.effects.counts.deleted)
	is_number(input.facts.effects.counts.owner)
	is_number(input.facts.effects.counts.connections)
	is_number(input.facts.effects.counts.reported)
	every path in input.facts.effects.paths {
		is_string(path.lexical)
		is_string(path.operation)
		is_boolean(path.noise)
	}
}

# METADATA
# title: How many paths would be gone
# description: The larger of two counts. Each path below a deleted directory is one of its own; caches are not counted.
deletions := max([input.facts.effects.counts.deleted, count(listed)])

listed contains path.lexical if {
	is_array(input.facts.effects.paths)
	some path in input.facts.effects.paths
	path.operation == "deleted"
	path.noise == false
}

# METADATA
# title: Written files that something runs later
later_paths(c) := {path.lexical |
	is_array(input.facts.effects.paths)
	some path in input.facts.effects.paths
	path.operation != "deleted"
	is_string(path.lexical)
	runs_later(c, split(lower(path.lexical), "/"))
}

runs_later(c, parts) if c.rehearsal.later_names[parts[count(parts) - 1]] == true

runs_later(c, parts) if {
	some part in parts
	c.rehearsal.later_directories[part] == true
}

runs_later(c, parts) if {
	is_object(c.rehearsal.later_endings)
	some ending, yes in c.rehearsal.later_endings
	yes == true
	endswith(parts[count(parts) - 1], ending)
}

# METADATA
# title: Effects of the wrong type
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.effects.unusable",
	"message": "the effects of the rehearsal could not be established",
	"type": "safety_check",
} if {
	present
	not usable
}

# METADATA
# title: Effects that are not all known
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.effects.incomplete",
	"message": "not all effects of the command are known, so that they can't be kept",
	"type": "safety_check",
} if {
	present
	not input.facts.effects.complete == true
}

# METADATA
# title: Many deletions
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.effects.deletions",
	"message": "the command deletes many files",
	"type": "safety_check",
} if {
	usable
	not deletions <= data.agenttool.config.effective.rehearsal.max_deleted
}

# METADATA
# title: Many rows, resources or messages
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.effects.reported",
	"message": "the tool reports to change more than it may without a question",
	"type": "safety_check",
} if {
	usable
	not input.facts.effects.counts.reported <= data.agenttool.config.effective.rehearsal.max_reported
}

# METADATA
# title: A file that something runs later
# description: Hooks, pipelines and start-up files run when nobody looks any more.
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.effects.runs_later",
	"message": "the command writes a file that runs later: a hook, a pipeline or a start-up file",
	"type": "safety_check",
	"blocked_path": path,
} if {
	usable
	some path in later_paths(data.agenttool.config.effective)
}

# METADATA
# title: Another owner
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.effects.owner",
	"message": "the command gives files to another owner",
	"type": "safety_check",
} if {
	usable
	input.facts.effects.counts.owner != 0
}

# METADATA
# title: The command tried to reach the network
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.effects.connections",
	"message": "the command tried to reach the network, which a rehearsal has not: made again, it may be run outside",
	"type": "safety_check",
} if {
	usable
	connects
}

connects if input.facts.effects.counts.connections != 0

connects if input.facts.effects.connections != []
