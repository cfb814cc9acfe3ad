# METADATA
# title: What a shell command does
# description: |
#   A line is allowed when each of its commands is proven to only read, or is of a category or begins with words that
#   the configuration agrees to. Anything else is asked about - a line that could not be parsed, that reads secrets,
#   whose places are not all known. Commands that wreck a machine or destroy a root, and lines that run what they
#   download, are denied. Where a command reads and writes is judged like a path argument (agenttool.rules.paths).
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.shell

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	input.facts.shell == []
} else if {
	proven(c)
	c.shell.commands.ask == []
	c.shell.commands.deny == []
} else if {
	agreed(c)
	count(deny) == 0
	count(ask) == 0
}

# METADATA
# title: There is a command, and every command is proven to only read at places that are all known
proven(_) if {
	input.facts.shell != []
	is_array(input.facts.shell)
	every fact in input.facts.shell {
		only_reads(fact)
	}
}

# METADATA
# title: There is a command, and the configuration agrees to every command
agreed(c) if {
	input.facts.shell != []
	is_array(input.facts.shell)
	every fact in input.facts.shell {
		line_agreed(c, fact)
	}
}

line_agreed(_, fact) if only_reads(fact)

line_agreed(c, fact) if {
	parsed(fact)
	fact.sensitive_read == false
	fact.runs_download == false
	fact.read_only == false
	some writing in commands_of(fact)
	writing.read_only == false
	every command in fact.commands {
		command_agreed(c, command)
	}
}

# METADATA
# title: The line is proven to only read
only_reads(fact) if {
	parsed(fact)
	fact.read_only == true
	fact.writes == false
	fact.destructive == false
	fact.executes == false
	fact.network == false
	fact.sensitive_read == false
	fact.runs_download == false
	fact.complete == true
	is_array(fact.commands)
	every command in fact.commands {
		places_stated(command)
	}
}

parsed(fact) if {
	fact.parsed == true
	fact.unparsed == null
}

# METADATA
# title: The configuration agrees to a command
command_agreed(_, command) if {
	command.read_only == true
	command.complete == true
	places_stated(command)
}

command_agreed(c, command) if {
	c.shell.categories[command.category] == "allow"
	command.complete == true
	places_stated(command)
}

command_agreed(c, command) if {
	c.shell.categories[command.category] == "sandbox"
	sandboxed(c)
	places_stated(command)
}

command_agreed(c, command) if {
	commands_allowed
	some entry in c.shell.commands.allow
	permitted(command, words_of(entry))
	bounded(command)
	words_named(command, entry)
	places_stated(command)
}

command_agreed(_, command) if {
	command.carries == true
	places_stated(command)
}

# METADATA
# title: The configuration has lists of commands
# description: The first statement of what looks at a command's words, so that decisions depend on them only then.
commands_allowed if count(data.agenttool.config.effective.shell.commands.allow) > 0

commands_denied if count(data.agenttool.config.effective.shell.commands.deny) > 0

commands_asked if count(data.agenttool.config.effective.shell.commands.ask) > 0

# METADATA
# title: The entry names each of the command's words that no table accounts for
# description: Such an option, value or inline code may write, load code or send. No program's name agrees to that.
words_named(command, entry) if {
	is_array(command.unreviewed)
	every word in command.unreviewed {
		word in words_of(entry)
	}
}

# METADATA
# title: The places that the command's operands name are known
# description: Of a test or build, where the files are the program's to choose, no operand is expected to tell them.
bounded(command) if {
	command.complete == true
} else if {
	is_string(command.category)
	not command.category in {"reader", "writer", "deleter", "tree_deleter", "unknown"}
}

# METADATA
# title: Each place has the path fact that agenttool.rules.paths judges
places_stated(command) if {
	is_array(command.places)
	every place in command.places {
		is_object(place.path)
	}
}

# METADATA
# title: The configuration has it that sessions of this mode run in a sandbox
# description: What a tool states of a sandbox counts for nothing. What the kernel holds answers by agenttool.sandbox.
sandboxed(c) if c.shell.sandbox_modes[input.session.mode] == true

# METADATA
# title: The words of an entry, which may have examples beside them
words_of(entry) := entry if {
	is_array(entry)
} else := entry.words if {
	is_object(entry)
}

# METADATA
# title: The command, or what stands behind harmless wrappers and assignments, begins with the words
# description: A permission looks at nothing else, so no wrapper that changes what runs can borrow it.
permitted(command, words) if {
	command.assignments == []
	words[0] == command.name
	every position, word in words {
		same_word(command, position, word)
	}
}

permitted(command, words) if begins(command.plain, words)

# METADATA
# title: The word at a place of the command; a program may be named with its directory
same_word(command, position, word) if {
	position == 0
	word == command.name
} else if {
	position > 0
	has_word(command.argv, position, word)
}

# METADATA
# title: The words have this one at a place
# description: |
#   As data.agenttool.lib.holds does, and of words alone, so that what others give to that does not depend on them.
has_word(words, position, word) if words[position] == word

# METADATA
# title: In one of the ways to read it the command begins with the words of an entry of a list that restricts
listed(list, command) if {
	some entry in list
	some reading in readings_of(command)
	begins(reading, words_of(entry))
}

begins(reading, words) if {
	words[0] == reading[0]
	every position, word in words {
		has_word(reading, position, word)
	}
}

# METADATA
# title: The facts about shell commands
facts := input.facts.shell if is_array(input.facts.shell)

# METADATA
# title: The commands of a line
commands_of(fact) := fact.commands if {
	is_array(fact.commands)
} else := []

# METADATA
# title: The places of a command
places_of(command) := command.places if {
	is_array(command.places)
} else := []

# METADATA
# title: The ways to read a command
readings_of(command) := [reading |
	is_array(command.spellings)
	some reading in command.spellings
	is_array(reading)
]

# METADATA
# title: Names of the programs that a line runs, whatever runs them, without their directories
programs(fact) := {program |
	some command in commands_of(fact)
	some reading in readings_of(command)
	program := reading[0]
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
	some fact in facts
	some command in commands_of(fact)
	some place in places_of(command)
	place.operation in {"delete", "delete_tree"}
	critical(data.agenttool.config.effective, place)
}

deny contains {
	"rule": "agenttool.rules.shell.critical_target",
	"message": "the command destroys a place that may not be destroyed",
	"type": "safety_check",
} if {
	some_removal
	some fact in facts
	some command in commands_of(fact)
	some reading in readings_of(command)
	reading[0] == "rm"
	is_array(command.argv)
	"--no-preserve-root" in command.argv
}

# METADATA
# title: Some program removes files
some_removal if {
	some fact in facts
	some command in commands_of(fact)
	some reading in readings_of(command)
	reading[0] == "rm"
}

# METADATA
# title: A place that may not be destroyed
critical(_, place) if {
	is_array(place.covers)
	some covered in place.covers
	covered in {"root", "home"}
}

critical(c, place) if c.shell.critical_targets[place.path.lexical] == true

critical(c, place) if c.shell.critical_targets[place.path.resolved] == true

# METADATA
# title: Running what was just downloaded
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.shell.downloaded_code",
	"message": "the command runs what it downloads",
	"type": "safety_check",
} if {
	some fact in facts
	fact.runs_download == true
}

# METADATA
# title: A command that the configuration denies
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.shell.denied_command",
	"message": "the configuration denies commands that begin so",
	"type": "rule",
} if {
	commands_denied
	some fact in facts
	some command in commands_of(fact)
	listed(data.agenttool.config.effective.shell.commands.deny, command)
}

# METADATA
# title: A command that the configuration asks about
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.asked_command",
	"message": "the configuration asks about commands that begin so",
	"type": "rule",
} if {
	commands_asked
	some fact in facts
	some command in commands_of(fact)
	listed(data.agenttool.config.effective.shell.commands.ask, command)
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
	not fact.destructive == false
	not line_agreed(data.agenttool.config.effective, fact)
}

# METADATA
# title: Git in a repository that may run programs of its own
# description: No category, list or sandbox agrees to what a repository's files name.
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.shell.repository",
	"message": "the repository is none that is known to run no programs of its own",
	"type": "safety_check",
} if {
	some fact in facts
	some command in commands_of(fact)
	not command.repository == null
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
	not keeps_all(fact)
	not line_agreed(data.agenttool.config.effective, fact)
}

keeps_all(fact) if {
	fact.read_only == true
	fact.writes == false
	fact.destructive == false
	fact.executes == false
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
	not fact.sensitive_read == false
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
	not fact.network == false
	not fact.connects == false
	not line_agreed(data.agenttool.config.effective, fact)
}

# METADATA
# title: A command of which it is not known whether it reaches the network
# description: |
#   A program that no table has. Where it is rehearsed it has no network, and what it tries is counted.
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.network_unknown",
	"message": "it is not known whether the command reaches the network",
	"type": "safety_check",
} if {
	some fact in facts
	not fact.network == false
	fact.connects == false
	not line_agreed(data.agenttool.config.effective, fact)
}

# METADATA
# title: A command whose places are not all known
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.incomplete",
	"message": "it is not known which files the command reads or writes",
	"type": "working_dir",
} if {
	some fact in facts
	parsed(fact)
	not places_known(fact)
	not line_agreed(data.agenttool.config.effective, fact)
}

places_known(fact) if {
	fact.complete == true
	fact.runs_download in {true, false}
	is_array(fact.commands)
	every command in fact.commands {
		places_stated(command)
	}
}

# METADATA
# title: A command with words that no table accounts for
# description: |
#   A question of its own, so that whoever waives the others for a program's name has not agreed to every option of it.
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.shell.unreviewed",
	"message": "the command has words that are not reviewed: they may write, load code or send",
	"type": "safety_check",
} if {
	some fact in facts
	parsed(fact)
	not words_reviewed(fact)
	not line_agreed(data.agenttool.config.effective, fact)
}

words_reviewed(fact) if {
	is_array(fact.commands)
	every command in fact.commands {
		all_reviewed(command)
	}
}

all_reviewed(command) if {
	is_array(command.unreviewed)
	count(command.unreviewed) == 0
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
allow contains allowed if {
	input.facts.shell != []
	no_findings(data.agenttool.config.effective)
}

# METADATA
# title: The answer for a command that may run
allowed := {
	"rule": "agenttool.rules.shell.read_only",
	"message": "the command is proven to only read",
	"type": "safety_check",
} if {
	proven(data.agenttool.config.effective)
} else := {
	"rule": "agenttool.rules.shell.agreed",
	"message": "the configuration agrees to such commands",
	"type": "rule",
}
