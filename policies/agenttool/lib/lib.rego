# METADATA
# title: Matching of tools by glob
# description: |
#   Used by every list of tools in the configuration. A star stands for any characters, dots and slashes too.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.lib

# METADATA
# title: The tool, named without doubt
# description: |
#   For lists that permit: only the id and the full name (namespace.name) count, so that a tool from elsewhere
#   can't borrow a trusted tool's short name or list it as an alias.
is_exactly(pattern) if glob.match(pattern, null, input.tool.id)

is_exactly(pattern) if glob.match(pattern, null, full_name)

# METADATA
# title: The tool, by any of its names
# description: For lists that restrict - id, full name, name and aliases count.
is_called(pattern) if is_exactly(pattern)

is_called(pattern) if glob.match(pattern, null, input.tool.name)

is_called(pattern) if {
	some alias in input.tool.aliases
	glob.match(pattern, null, alias)
}

# METADATA
# title: The tool has none of these names
# description: |
#   Positive, unlike "not is_called(pattern)": a name or a pattern that can't be compared proves nothing.
is_not_called(pattern) if {
	glob.match(pattern, null, input.tool.id) == false
	glob.match(pattern, null, full_name) == false
	glob.match(pattern, null, input.tool.name) == false
	is_array(input.tool.aliases)
	every alias in input.tool.aliases {
		differs(pattern, alias)
	}
}

differs(pattern, name) if glob.match(pattern, null, name) == false

# METADATA
# title: A table has a value for a key
# description: |
#   For the body of "every", where an index in brackets is not safe - one engine reads it as a loop of its own.
holds(table, key, value) if table[key] == value

# METADATA
# title: Somebody stated this fact of the tool
# description: |
#   For rules about every element of a list that a declaration may lack. Nothing was stated is no list that is empty.
states(name) if {
	is_array(input.tool.inferred)
	every word in input.tool.inferred {
		is_string(word)
		word != name
	}
}

# METADATA
# title: Namespace and name
full_name := concat(".", [input.tool.namespace, input.tool.name])

# METADATA
# title: None of the patterns is one of the tool's names
none_called(patterns) if {
	patterns == []
} else if {
	is_array(patterns)
	every pattern in patterns {
		is_not_called(pattern)
	}
}

# METADATA
# title: The tool's names have the right types
identified if {
	is_string(input.tool.id)
	is_string(input.tool.namespace)
	is_string(input.tool.name)
	is_array(input.tool.aliases)
	every alias in input.tool.aliases {
		is_string(alias)
	}
}

# METADATA
# title: Texts among the arguments
# description: |
#   Of the first four levels; whoever makes the call's facts looks deeper. Written out, because engines differ in
#   how they walk a document.
texts contains value if {
	holds_values(input.input)
	some value in input.input
	is_string(value)
}

texts contains value if {
	some value in second_level
	is_string(value)
}

texts contains value if {
	some value in third_level
	is_string(value)
}

texts contains value if {
	some outer in third_level
	holds_values(outer)
	some value in outer
	is_string(value)
}

second_level contains value if {
	holds_values(input.input)
	some outer in input.input
	holds_values(outer)
	some value in outer
}

third_level contains value if {
	some outer in second_level
	holds_values(outer)
	some value in outer
}

holds_values(value) if is_array(value)

holds_values(value) if is_object(value)
