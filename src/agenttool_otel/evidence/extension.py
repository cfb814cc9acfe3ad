"""The files of an extension that permits what people agreed to: rules, their data, tests and a page
for the reviewer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from agenttool_otel.evidence.parts import RECEIVER
from agenttool_otel.evidence.suggest import Learnt, Unlearnt
from agenttool_otel.evidence.words import unmarked
from agenttool_otel.facts.argument_names import identity_words

RULE_PREFIX: Final = "custom.suggested."
"""Begins the names of its rules."""

_RULES: Final = "agenttool/custom/suggested.rego"
_TESTS: Final = "agenttool/custom/suggested_test.rego"
_DATA: Final = "agenttool/custom/data.json"
_SEEN: Final = "data.agenttool.custom.seen"
_EXAMPLES: Final = 2  # inputs of each rule that its test tries
_MAX_REFUSED: Final = 25  # inputs of denials that the tests try
_MAX_LINE: Final = 800  # characters; Rego is not read with lines of more than 1,024

_HEAD: Final = """# METADATA
# title: What people agreed to
# description: |
#   Made of decision records by "agenttool policy suggest". Each rule answers the questions of one tool, for what its
#   calls reached. What is listed lies in data.json beside this file. Nothing here lifts a denial.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom.suggested
"""

_PLACES: Final = """
# METADATA
# title: Every path is one that people agreed to
places_known(facts, known) if {
	count(facts) > 0
	every fact in facts {
		place_known(fact, known)
	}
}
"""

_PLACE: Final = """
# METADATA
# title: The path is one that people agreed to, or lies below such a folder
place_known(fact, known) if {
	certain(fact)
	some entry in known.files
	entry.access == fact.access
	entry.path == fact.resolved
}

place_known(fact, known) if {
	certain(fact)
	some entry in known.folders
	entry.access == fact.access
	steps := split(fact.resolved, "/")
	folder := split(entry.path, "/")
	count(steps) > count(folder)
	array.slice(steps, 0, count(folder)) == folder
}

certain(fact) if {
	fact.certain == true
	fact.sensitive == null
	fact.rejected == null
}
"""

_HOSTS: Final = """
# METADATA
# title: Every URL leads to a host that people agreed to
hosts_known(facts, known) if {
	count(facts) > 0
	every fact in facts {
		host_known(fact, known)
	}
}

host_known(fact, known) if {
	fact.valid == true
	fact.certain == true
	fact.credentials == false
	fact.host in known.hosts
}
"""

_COMMANDS: Final = """
# METADATA
# title: Every command is one that people agreed to, or only reads inside the roots
commands_known(facts, known) if {
	count(facts) > 0
	every fact in facts {
		line_known(fact, known)
	}
}

line_known(fact, known) if {
	fact.parsed == true
	fact.sensitive_read == false
	fact.runs_download == false
	count(fact.commands) > 0
	every command in fact.commands {
		command_known(command, known)
	}
}

command_known(command, known) if {
	command.read_only == true
	command.complete == true
	operands_known(command.places, known)
}

command_known(command, known) if {
	count(command.plain) > 0
	command.plain in known.commands
	operands_known(command.places, known)
}

command_known(command, known) if {
	command.complete == true
	command.unreviewed == []
	some program in known.programs
	program.category == command.category
	count(command.plain) > 0
	words := [word | some word in program.words]
	array.slice(command.plain, 0, count(words)) == words
	operands_known(command.places, known)
}

operands_known(places, known) if {
	is_array(places)
	every place in places {
		operand_known(place.path, known)
	}
}

operand_known(fact, _) if {
	fact.access == "read"
	fact.inside == true
}

operand_known(fact, known) if place_known(fact, known)
"""

_RECEIVERS: Final = """
# METADATA
# title: A receiver is one that people agreed to, or of a mail domain that they agreed to
receiver_known(value, known) if one_known(value, known)

receiver_known(value, known) if {
	is_array(value)
	count(value) > 0
	every each in value {
		one_known(each, known)
	}
}

one_known(value, known) if value in known.values

one_known(value, known) if {
	is_string(value)
	some domain in known.domains
	parts := split(value, "@")
	parts == [parts[0], domain]
}

# METADATA
# title: No other argument names a receiver
nobody_else(names) if {
	every name in object.keys(input.input) {
		expected(name, names)
	}
}

expected(name, _) if not name in receiving

expected(name, names) if name in names

receiving := RECEIVING
"""

_TEST_HEAD: Final = """# Tests made of the records that the rules were made of, where a hidden word is a digest.
package agenttool.custom_test.suggested

decided(document) := decision if {
	decision := data.agenttool.permission.decision with input as document
}

test_what_people_agreed_to_is_allowed if {
	{name | some name, document in agreed; decided(document).behavior != "allow"} == set()
}

test_what_was_denied_or_rejected_is_not_allowed if {
	{name | some name, document in refused; decided(document).behavior == "allow"} == set()
}

test_another_tool_is_not_allowed_the_same if {
	{name |
		some name, document in agreed
		tool := object.union(document.tool, {"id": "another.tool", "namespace": "another", "name": "tool"})
		decided(object.union(document, {"tool": tool})).behavior == "allow"
	} == set()
}
"""


def extension_files(
    learnt: Iterable[Learnt], unlearnt: Iterable[Unlearnt], refused: Iterable[Any]
) -> dict[str, str]:
    """Return the files of an extension, by their paths in its folder.

    Args:
        learnt: what each rule permits.
        unlearnt: what no rule was made of, for the reviewer.
        refused: inputs of what was denied or rejected, for the tests.
    """
    learnt = list(learnt)
    seen = {rule.name: _data_of(rule) for rule in learnt}
    manifest = {"revision": "suggested", "rego_version": 1, "roots": ["agenttool/custom"]}
    return {
        ".manifest": _json(manifest),
        _RULES: "".join([_HEAD, *map(_rule, learnt), *_helpers(learnt)]),
        _DATA: _json({"seen": seen}),
        _TESTS: _tests(learnt, refused),
        "README.md": _page(learnt, unlearnt),
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def _data_of(rule: Learnt) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kinds = set(rule.kinds)
    if kinds & {"places", "commands"}:
        found["files"] = [_place(*each) for each in rule.exact.get("places", ())]
        found["folders"] = [_place(*each) for each in rule.wider.get("places", ())]
    if "hosts" in kinds:
        found["hosts"] = rule.exact["hosts"]
    if "commands" in kinds:
        found["commands"] = rule.exact.get("commands", [])
        found["programs"] = [
            {"category": category, "words": words}
            for category, words in rule.wider.get("commands", ())
        ]
    receivers = {
        kind.removeprefix(RECEIVER): {
            "values": rule.exact.get(kind, []),
            "domains": rule.wider.get(kind, []),
        }
        for kind in _receivers(rule)
    }
    return {**found, **({"receivers": receivers} if receivers else {})}


def _place(access: str, steps: list[str]) -> dict[str, str]:
    return {"access": access, "path": "/".join(steps)}


def _receivers(rule: Learnt) -> list[str]:
    return [kind for kind in rule.kinds if kind.startswith(RECEIVER)]


def _rule(rule: Learnt) -> str:
    people = len({call.person for call in rule.calls})
    waives = "".join(f'\t\t"{question}",\n' for question in rule.questions)
    conditions = "".join(f"\t{line}\n" for line in _conditions(rule))
    steps = "; ".join(_steps(rule)) or "no steps: the values are those that were seen"
    tool = json.dumps(rule.tool)
    return f"""
# METADATA
# title: What people agreed to of {tool[1:-1]}
# description: |
#   Made of {len(rule.calls)} calls, answered by {people} people. Beyond what was seen go:
#   {steps}.
#   What is listed may be combined in ways that were not seen, and other arguments are free.
allow contains {{
	"rule": "{RULE_PREFIX}{rule.name}",
	"message": "people agreed to such calls",
	"waives": [
{waives}	],
}} if {{
	input.tool.id == {tool}
	object.get(input.facts, "effects", null) == null
{conditions}}}
"""


def _conditions(rule: Learnt) -> Iterator[str]:
    known, kinds = f"{_SEEN}.{rule.name}", set(rule.kinds)
    is_shell = any(call.document["facts"]["shell"] for call in rule.calls)
    yield "input.facts.sql == []"
    has_paths = "places" in kinds and not is_shell
    yield f"places_known(input.facts.paths, {known})" if has_paths else "input.facts.paths == []"
    has_hosts = "hosts" in kinds
    yield f"hosts_known(input.facts.urls, {known})" if has_hosts else "input.facts.urls == []"
    yield f"commands_known(input.facts.shell, {known})" if is_shell else "input.facts.shell == []"
    if is_shell:
        return
    names = [kind.removeprefix(RECEIVER) for kind in _receivers(rule)]
    for name in names:
        text = json.dumps(name)
        yield f"receiver_known(input.input[{text}], {known}.receivers[{text}])"
    given = ", ".join(json.dumps(name) for name in sorted(names))
    yield f"nobody_else({{{given}}})" if given else "nobody_else(set())"


def _steps(rule: Learnt) -> Iterator[str]:
    if "places" in rule.wider:
        yield "all that lies below the folders"
    if "hosts" in rule.exact:
        yield "each page of the hosts"
    if "commands" in rule.wider:
        yield "each operand in these places and each reviewed option of the programs"
    for kind in _receivers(rule):
        if kind in rule.wider:
            # a name may have a line break, which would end the comment that this stands in
            name = json.dumps(kind.removeprefix(RECEIVER))
            yield f"each address of the mail domains of {name}"


def _helpers(learnt: list[Learnt]) -> Iterator[str]:
    rules = "".join(line for rule in learnt for line in _conditions(rule))
    if "places_known(" in rules:
        yield _PLACES
    if "places_known(" in rules or "commands_known(" in rules:
        yield _PLACE
    if "hosts_known(" in rules:
        yield _HOSTS
    if "commands_known(" in rules:
        yield _COMMANDS
    if "nobody_else(" in rules:
        receiving = ", ".join(json.dumps(word) for word in sorted(identity_words()))
        helper = _RECEIVERS.replace("RECEIVING", f"{{{receiving}}}")
        yield (
            helper
            if "receiver_known(" in rules
            else helper[helper.index("\n# METADATA\n# title: No") :]
        )


def _tests(learnt: list[Learnt], refused: Iterable[Any]) -> str:
    agreed = [
        text for rule in learnt for text in _cases(call.document for call in rule.calls)[:_EXAMPLES]
    ]
    tools = {rule.tool for rule in learnt}
    ordered = sorted(refused, key=lambda document: document["tool"]["id"] not in tools)
    return "\n".join(
        [_TEST_HEAD, _table("agreed", agreed), _table("refused", _cases(ordered)[:_MAX_REFUSED])]
    )


def _cases(documents: Iterable[Any]) -> list[str]:
    """Return inputs as texts of Rego, without those that have a line too long for it."""
    texts = [json.dumps(unmarked(each), indent="\t") for each in documents]
    return [text for text in texts if max(map(len, text.splitlines())) < _MAX_LINE]


def _table(name: str, cases: list[str]) -> str:
    if not cases:
        return f"{name} := {{}}\n"
    named = "".join(f'"{name} {number}": {case},\n' for number, case in enumerate(cases, 1))
    return f"{name} := {{\n{named}}}\n"


def _page(learnt: list[Learnt], unlearnt: Iterable[Unlearnt]) -> str:
    """Return a page for the person who reviews the extension."""
    lines = [
        "# Suggested permissions",
        "",
        "Made of decision records. Read it, take out what should stay a question, and try it in shadow mode.",
        "",
        "| rule | tool | calls | questions that it answers | goes beyond what was seen by |",
        "|---|---|---|---|---|",
    ]
    for rule in learnt:
        steps = "; ".join(_steps(rule)) or "nothing"
        questions = "<br>".join(f"`{question}`" for question in rule.questions)
        cells = (
            f"`{RULE_PREFIX}{rule.name}`",
            f"`{rule.tool}`",
            str(len(rule.calls)),
            questions,
            steps,
        )
        lines.append(f"| {' | '.join(cells)} |")
    rest = [f"- `{each.tool}`, {each.calls} calls: {each.reason}" for each in unlearnt]
    if rest:
        lines += ["", "People agreed to these, too, and no rule was made of them:", "", *rest]
    return "\n".join(lines) + "\n"
