# METADATA
# title: What an SQL text does
# description: |
#   One statement that is proven to only read needs no question. Everything else is asked about; a change without
#   a WHERE clause, a statement kind that the configuration forbids and a protected table are denied.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.sql

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	input.facts.sql == []
} else if {
	reads(c)
}

# METADATA
# title: There is a statement that the tool is declared to run, and it is proven to only read
proven(c) if {
	input.facts.sql != []
	reads(c)
	every fact in input.facts.sql {
		fact.inferred == false
	}
}

reads(c) if {
	input.facts.sql != []
	is_array(input.facts.sql)
	every fact in input.facts.sql {
		parsed(fact)
		only_reads(fact)
		single(fact)
		unprotected(c, fact)
	}
}

parsed(fact) if {
	fact.parsed == true
	fact.unparsed == null
}

only_reads(fact) if {
	fact.read_only == true
	fact.ddl == false
	fact.unbounded_write == false
	fact.tables_written == []
}

single(fact) if fact.multiple == false

unprotected(c, fact) if {
	is_array(fact.tables_read)
	every table in fact.tables_read {
		free(c, table)
	}
}

free(c, table) if {
	is_string(table)
	object.get(c.sql.protected_tables, lower(table), false) == false
}

# METADATA
# title: The facts about SQL
facts := input.facts.sql if is_array(input.facts.sql)

# METADATA
# title: A change of every row
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.sql.unbounded_write",
	"message": "the statement changes or deletes every row of a table",
	"type": "safety_check",
} if {
	some fact in facts
	fact.unbounded_write == true
}

# METADATA
# title: A forbidden kind of statement
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.sql.forbidden_statement",
	"message": "the statement is of a kind that the configuration forbids",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	is_array(fact.statements)
	some kind in fact.statements
	is_string(kind)
	c.sql.statements[lower(kind)] == "deny"
}

# METADATA
# title: A protected table
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.sql.protected_table",
	"message": "the statement touches a protected table",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	some tables in [fact.tables_read, fact.tables_written]
	is_array(tables)
	some table in tables
	is_string(table)
	c.sql.protected_tables[lower(table)] == true
}

# METADATA
# title: A text that could not be understood
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.sql.unparsed",
	"message": "the SQL text could not be understood",
	"type": "safety_check",
} if {
	some fact in facts
	not parsed(fact)
}

# METADATA
# title: A statement that changes something
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.sql.writes",
	"message": "the statement is not proven to only read",
	"type": "safety_check",
} if {
	some fact in facts
	not only_reads(fact)
}

# METADATA
# title: More than one statement
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.sql.multiple",
	"message": "the text may hold more than one statement",
	"type": "safety_check",
} if {
	some fact in facts
	not single(fact)
}

# METADATA
# title: Tables that could not be established
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.sql.unproven",
	"message": "the statements of the call could not be established",
	"type": "safety_check",
} if {
	not established(data.agenttool.config.effective)
}

established(c) if {
	is_array(input.facts.sql)
	every fact in input.facts.sql {
		unprotected(c, fact)
	}
}

# METADATA
# title: Statements that may run
allow contains allowed if reads(data.agenttool.config.effective)

# METADATA
# title: The answer for a statement that may run
allowed := {
	"rule": "agenttool.rules.sql.read_only",
	"message": "the statement is proven to only read",
	"type": "safety_check",
}
