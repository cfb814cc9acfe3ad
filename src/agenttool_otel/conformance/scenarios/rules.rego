# Functions of the expectations. `input` holds what a subject returned and recorded:
#
#   setup     the params of declare
#   declared  tool_declaration records, in the order of setup.tools
#   surfaces, searches, loaded    what surface, search and load returned, in their order
#   calls     each call as it was given, with its `invocation_id`, its `replies` (a tool_result or null) and, where it
#             was answered, `answered_as`: the invocation id of the answer's reply
#   results   the last reply to each call
#   records   {"object": name, "record": record}, oldest first
#   ran       {"tool", "arguments"} for each body that began, {"tool", "note"} for each note
package scenario

import rego.v1

# "Use succeeded, partial_succeeded, ...": any other word is that of a call that waits
terminal_statuses := {
	"succeeded",
	"partial_succeeded",
	"failed",
	"denied",
	"rejected",
	"redacted",
	"too_large",
	"canceled",
	"timed_out",
	"synthetic_error",
	"discarded",
}

end_events := {
	"tool.invocation.succeeded",
	"tool.invocation.failed",
	"tool.invocation.canceled",
	"tool.invocation.timed_out",
}

# events of what comes after the arguments were read
later_events := {
	"tool.invocation.arguments_ready",
	"tool.hook.pre.started",
	"tool.permission.requested",
	"tool.permission.decided",
	"tool.invocation.queued",
	"tool.invocation.started",
}

# the standard's phases; an implementation may leave out those that do not apply
order_of_events := [
	"tool.invocation.planned",
	"tool.invocation.selected",
	"tool.invocation.arguments_ready",
	"tool.permission.decided",
	"tool.invocation.started",
	"tool.invocation.succeeded",
]

last(list) := list[count(list) - 1]

# --- records ------------------------------------------------------------------

of(kind) := [line.record | some line in input.records; line.object == kind]

of_call(kind, call) := [record | some record in of(kind); record.invocation_id == call.invocation_id]

events(call) := [event.event_type | some event in of_call("tool_event", call)]

all_events := {event.event_type | some event in of("tool_event")}

invocation(call) := last(of_call("tool_invocation", call))

states(call) := [step.status | some step in invocation(call).status_transitions]

decisions(call) := of_call("tool_permission_decision", call)

# of a request, not of its outcome: tool.invocation.cancel_requested, or an implementation's own name
requests_to_cancel(event_type) if {
	contains(event_type, "cancel")
	not event_type in end_events
	not contains(event_type, "cancel_failed")
}

progress(call) := of_call("tool_progress", call)

# by value or by reference, as an implementation records it
input_of(record, name) := record[sprintf("%s_ref", [name])]

input_of(record, name) := record[name] if not record[sprintf("%s_ref", [name])]

# --- tools --------------------------------------------------------------------

tool(name) := [item | some item in input.declared; item.name == name][0]

# a surface or a search names a tool by its id or name, or by an object with one of them
names_tool(entry, name) if entry in {name, tool(name).tool_id}

names_tool(entry, name) if entry.tool_id == tool(name).tool_id

listed(entries, name) if {
	some entry in entries
	names_tool(entry, name)
}

interface(name) := [item |
	some item in of("tool_interface")
	item.interface_id == tool(name).interface_ref
][0]

execution_profile(name) := [item |
	some item in of("tool_execution_profile")
	item.execution_profile_id == tool(name).execution_profile_ref
][0]

permission_profile(name) := [item |
	some item in of("tool_permission_profile")
	item.permission_profile_id == tool(name).permission_profile_ref
][0]

# --- results ------------------------------------------------------------------

error_class(result) := result.error.error_class

# paused: no terminal result, or any status that is not terminal
paused(reply) if reply == null

paused(reply) if {
	is_object(reply)
	not reply.status in terminal_statuses
}

failed_with(result, classes) if {
	result.status in terminal_statuses
	result.is_error == true
	error_class(result) in classes
}

in_order(call) if {
	seen := [event | some event in events(call); event in order_of_events]
	seen == [event | some event in order_of_events; event in seen]
}

# the end of a call is reported once: one event, an invocation that has ended, a result
ended_once(call) if {
	count([event | some event in events(call); event in end_events]) == 1
	# a call that waited may have had the result that it waits
	count([event | some event in events(call); event == "tool.result.created"]) <= count(call.replies)
	count(of_call("tool_invocation", call)) > 0
	recorded_ends := [result | some result in of_call("tool_result", call); result.status in terminal_statuses]
	count(recorded_ends) == 1
}

texts(result) := [text |
	some field in ["content", "model_facing_content"]
	some block in object.get(result, field, [])
	text := object.get(block, "text", "")
	is_string(text)
	text != ""
]

# an explanation for the conversation, evidence or user interface: anywhere in the result
explained(result) if count(texts(result)) > 0

explained(result) if count(result.error.message) > 0

explained(result) if count(result.summary) > 0

explained(result) if count(result.ui_facing_summary) > 0

# "an explicit empty-result marker or structured status"
marked_empty(result) if {
	some field in ["content", "model_facing_content"]
	some block in result[field]
	block.empty == true
}

marked_empty(result) if {
	some field in ["content", "model_facing_content"]
	some block in result[field]
	contains(lower(block.type), "empty")
}

marked_empty(result) if {
	some name, value in result
	contains(lower(name), "empty")
	value == true
}

marked_empty(result) if {
	some text in texts(result)
	regex.match(`(?i)\b(empty|nothing|no (output|result|content))\b`, text)
}

# --- what ran -----------------------------------------------------------------

bodies(name) := [entry | some entry in input.ran; entry.tool == name; entry.arguments]

arguments_of(name) := [entry.arguments | some entry in bodies(name)]

# whether what was noted first came before what began then
noted_before_body(note, arguments) if {
	some i, first in input.ran
	some j, then in input.ran
	first.note == note
	then.arguments == arguments
	i < j
}

notes(name) := [entry.note | some entry in input.ran; entry.tool == name; entry.note]

in_no_record(text) if {
	count(input.records) > 0
	not contains(json.marshal(input.records), text)
}
