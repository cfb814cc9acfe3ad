# METADATA
# title: What a shell command does
# description: |
#   A command that is proven to only read, and names no path outside of the roots, needs no question. Anything
#   else is asked about: a command that could not be parsed, that reads secrets, writes, reaches the network or
#   runs other programs. Commands that wreck a machine, or run what they have just downloaded, are denied.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.shell

# METADATA
# title: Nothing here to ask or deny
clear(c) if {
	input.facts.shell == []
} else if {
	proven(c)
}

# METADATA
# title: There is a command, and every command is proven to only read inside the roots
proven(_) if {
	input.facts.shell != []
	is_array(input.facts.shell)
	every fact in input.facts.shell {
		parsed(fact)
		only_reads(fact)
		discreet(fact)
		offline(fact)
		placed(fact)
	}
}

parsed(fact) if {
	fact.parsed == true
	fact.unparsed == null
}

only_reads(fact) if {
	fact.read_only == true
	fact.writes == false
	fact.destructive == false
	fact.executes == false
}

discreet(fact) if fact.sensitive_read == false

offline(fact) if fact.network == false

# METADATA
# title: The command names no path outside of the roots
# description: Words are compared as text; a word that climbs or starts in somebody's home is outside.
placed(fact) if {
	input.session.roots == []
	is_array(fact.paths)
}

placed(fact) if {
	is_array(fact.paths)
	is_array(input.session.roots)
	every path in fact.paths {
		word_inside(path)
	}
}

word_inside(word) if {
	is_string(word)
	not startswith(word, "/")
	not startswith(word, "~")
	not ".." in split(word, "/")
}

word_inside(word) if {
	is_string(word)
	not ".." in split(word, "/")
	some root in input.session.roots
	within(word, root)
}

within(word, root) if word == root

within(word, root) if {
	is_string(root)
	startswith(word, concat("", [trim_suffix(root, "/"), "/"]))
}

# METADATA
# title: The facts about shell commands
facts := input.facts.shell if is_array(input.facts.shell)

# METADATA
# title: Names of the programs that a command runs, without their directories
programs(fact) := {program |
	is_array(fact.commands)
	some command in fact.commands
	is_string(command.name)
	parts := split(command.name, "/")
	program := parts[count(parts) - 1]
}

# METADATA
# title: A command that wrecks a machine
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.shell.critical",
	"message": "the command is one that is never run",
	"type": "safety_check",
} if {
	some fact in facts
	some program in programs(fact)
	data.agenttool.config.effective.shell.critical_programs[program] == true
}

# METADATA
# title: Destroying a root, a home or the whole file system
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.shell.critical_target",
	"message": "the command destroys a place that may not be destroyed",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	destroys(fact)
	some target in targets(fact)
	hopeless(c, target)
}

# METADATA
# title: Running what was just downloaded
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.shell.downloaded_code",
	"message": "the command runs what it downloads",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	names := programs(fact)
	some fetcher in names
	c.shell.fetchers[fetcher] == true
	some interpreter in names
	c.shell.interpreters[interpreter] == true
}

# METADATA
# title: A command that could not be understood
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.shell.unparsed",
	"message": "the command has a construct that can't be proven harmless",
	"type": "safety_check",
} if {
	some fact in facts
	not parsed(fact)
}

# METADATA
# title: A destructive command
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.shell.destructive",
	"message": "the command deletes, overwrites or stops something",
	"type": "safety_check",
} if {
	some fact in facts
	destroys(fact)
}

# METADATA
# title: A command that is not proven to only read
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.not_read_only",
	"message": "the command is not proven to only read",
	"type": "safety_check",
} if {
	some fact in facts
	not only_reads(fact)
}

# METADATA
# title: A command that reads secrets
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.shell.sensitive_read",
	"message": "the command reads something sensitive or could carry data out",
	"type": "safety_check",
} if {
	some fact in facts
	not discreet(fact)
}

# METADATA
# title: A command that reaches the network
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.network",
	"message": "the command reaches the network",
	"type": "safety_check",
} if {
	some fact in facts
	not offline(fact)
}

# METADATA
# title: A command that names a path outside of the roots
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.outside",
	"message": "the command names a path outside of the session's roots",
	"type": "working_dir",
} if {
	some fact in facts
	not placed(fact)
}

# METADATA
# title: Facts of the wrong type
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.shell.unproven",
	"message": "the commands of the call could not be established",
	"type": "safety_check",
} if {
	not facts
}

# METADATA
# title: Commands that may run
allow contains allowed if proven(data.agenttool.config.effective)

# METADATA
# title: The answer for a command that may run
allowed := {
	"rule": "agenttool.rules.shell.read_only",
	"message": "the command is proven to only read",
	"type": "safety_check",
}

destroys(fact) if fact.destructive != false

# METADATA
# title: What a command aims at
# description: Its path words, and every argument of its commands, for a parser may not know which are paths.
targets(fact) := {word |
	is_array(fact.commands)
	some command in fact.commands
	is_array(command.argv)
	some word in command.argv
	is_string(word)
} | {word |
	is_array(fact.paths)
	some word in fact.paths
	is_string(word)
}

# METADATA
# title: A target that may not be destroyed
hopeless(c, target) if c.shell.critical_targets[target] == true

hopeless(_, target) if {
	is_array(input.session.roots)
	some root in input.session.roots
	trim_suffix(target, "/") == trim_suffix(root, "/")
}
