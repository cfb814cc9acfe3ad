// A small implementation of Agent Tool v0.2.0, as a subject of `agenttool conformance -- node subject.mjs`.
// It decides, asks, validates and records; it has no surfaces, progress, scheduling or persistence, and says so.
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

const key = randomBytes(32);
let tools, setup, records, ran, waiting;
const now = () => new Date().toISOString();
const id = (kind) => `${kind}_${randomUUID()}`;
// records refer to inputs by a keyed digest: they hold no argument
const ref = (value) => "hmac-sha256:" + createHmac("sha256", key).update(JSON.stringify(value)).digest("hex");
const put = (object, record) => records.push({ object, record: structuredClone({ schema_version: "0.2.0", ...record }) });
const emit = (event_type, facts) => put("tool_event", { event_id: id("evt"), event_type, source: "subject.mjs", time: now(), ...facts });

class Lacks extends Error {}
class Refusal extends Error {
  constructor(error_class, message, state, status = "failed") { super(message); Object.assign(this, { error_class, state, status }); }
}

function declare(tool) {
  if (tool.should_defer || tool.model_requirements) throw new Lacks("deferred loading and surfaces");
  if (tool.supports_cancel || tool.timeout_ms) throw new Lacks("progress, cancellation and timeouts");
  if (tool.max_inline_chars || tool.redaction_rules) throw new Lacks("result persistence");
  const tool_id = `example.${tool.name}`;
  const refs = { execution_profile_ref: `execution:${tool.name}`, permission_profile_ref: `permission:${tool.name}` };
  const declaration = {
    schema_version: "0.2.0", tool_id, namespace: "example", name: tool.name, description: tool.description,
    lifecycle: tool.lifecycle ?? "available", tool_kind: "function", external_mappings: tool.external_mappings ?? [],
    input_contract: { model_input_schema: tool.model_input_schema, sensitive_fields: tool.sensitive_fields ?? [] },
    interface_ref: `interface:${tool.name}`, ...refs,
  };
  put("tool_declaration", declaration);
  put("tool_interface", {
    interface_id: `interface:${tool.name}`, tool_id, ...refs, model_input_schema: tool.model_input_schema,
    is_read_only: tool.is_read_only ?? false, is_concurrency_safe: tool.is_concurrency_safe ?? false,
    is_destructive: tool.is_destructive ?? false, is_open_world: tool.is_open_world ?? true,
  });
  put("tool_execution_profile", { execution_profile_id: refs.execution_profile_ref, execution_kind: "embedded_runtime", supports_progress: false, supports_cancel: false });
  put("tool_permission_profile", { permission_profile_id: refs.permission_profile_ref, risk_level: tool.risk_level ?? "medium" });
  emit("tool.declared", { tool_id });
  tools.set(tool.name, { ...tool, declaration });
  return declaration;
}

function validate(tool, args) {
  const { properties, required = [] } = tool.model_input_schema;
  const fits = (type, value) => (type === "integer" ? Number.isInteger(value) : typeof value === type);
  const invalid = Object.entries(args).some(([name, value]) => !properties[name] || !fits(properties[name].type, value));
  if (invalid || required.some((name) => !(name in args))) throw new Refusal("schema_validation_failed", "the arguments do not fit the schema", "validation_failed");
  const rule = tool.value_validation;
  if (rule && new RegExp(rule.forbidden_pattern).test(args[rule.argument])) throw new Refusal("invalid_arguments", "the tool refuses a value", "validation_failed");
}

function preHooks(tool) {
  for (const hook of setup.hooks ?? []) {
    if (hook.tool !== tool.name) continue;
    if (hook.behavior.set) throw new Lacks("changes of the input");
    if (hook.behavior.stop) throw new Refusal("hook_blocked", hook.behavior.stop, "blocked");
    if (hook.behavior.fail) throw new Refusal("hook_failed", "a hook failed", "blocked");
  }
}

function run(tool, args) {
  ran.push({ tool: tool.name, arguments: args });
  const filled = (text) => text.replace(/\{(\w+)\}/g, (_, name) => String(args[name]));
  for (const action of tool.behavior) {
    if ("note" in action) ran.push({ tool: tool.name, note: filled(action.note) });
    else if ("fail" in action) throw new Refusal(action.fail.error_class ?? "execution_failed", "the tool failed", "failed");
    else if ("return" in action) return [{ type: "text", text: filled(action.return) }];
    else if ("return_content" in action) return action.return_content;
    else if (!("report" in action)) throw new Lacks(`the action ${Object.keys(action)[0]}`);
  }
  return [{ type: "text", text: "(no output)", empty: true }];
}

function step(call, status) { call.status = status; call.status_transitions.push({ status, at: now() }); }

function decide(call, behavior, source, reason) {
  const decision_id = id("perm");
  put("tool_permission_decision", { decision_id, invocation_id: call.invocation_id, behavior, source, reason, rule_refs: [reason.rule_ref], decided_at: now() });
  call.permission_decision_refs.push(decision_id);
  emit("tool.permission.decided", { invocation_id: call.invocation_id });
}

function end(call, tool, fields) {
  const result = { schema_version: "0.2.0", result_id: id("result"), invocation_id: call.invocation_id, is_error: false, created_at: now(), ...fields };
  call.ended_at = now();
  // the caller gets the content; the record has none of it
  put("tool_result", { ...result, content: undefined, error: result.error && { ...result.error, message: undefined } });
  put("tool_invocation", call);
  emit("tool.result.created", { invocation_id: call.invocation_id });
  emit(`tool.invocation.${call.status === "succeeded" ? "succeeded" : "failed"}`, { invocation_id: call.invocation_id });
  return { invocation_id: call.invocation_id, result };
}

function execute(call, tool, args) {
  Object.assign(call, { call_input_ref: ref(args), started_at: now() });
  step(call, "running");
  emit("tool.invocation.started", { invocation_id: call.invocation_id });
  const content = run(tool, args);
  step(call, "succeeded");
  return end(call, tool, { status: "succeeded", content, artifact_refs: content.filter((block) => block.type === "artifact_ref") });
}

function guarded(call, tool, work) {
  try { return work(); } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    step(call, error.state);
    if (error.state === "validation_failed") emit("tool.invocation.validation_failed", { invocation_id: call.invocation_id });
    return end(call, tool, { status: error.status, is_error: true, error: { error_class: error.error_class, message: error.message } });
  }
}

function invoke(request) {
  const tool = tools.get(request.tool);
  const input = ref(request.arguments);
  const call = {
    invocation_id: id("inv"), tool_id: tool?.declaration.tool_id ?? request.tool, native_call_id: request.native_call_id, external_mappings: request.external_mappings ?? [], status: "planned", created_at: now(),
    model_input_ref: input, observable_input_ref: input, permission_input_ref: input, permission_decision_refs: [], status_transitions: [],
  };
  step(call, "planned");
  return guarded(call, tool, () => {
    if (!tool) throw new Refusal("unknown_tool", `there is no tool ${request.tool}`, "blocked");
    if (tool.lifecycle === "retired") throw new Refusal("blocked_tool", "the tool is retired", "blocked");
    validate(tool, request.arguments);
    preHooks(tool);
    const allowed = { behavior: "allow", reason: { type: "rule", rule_ref: "default", message: "allowed" } };
    const stated = setup.decisions?.[tool.name] ?? allowed;
    const applies = Object.entries(stated.when ?? {}).every(([name, value]) => request.arguments[name] === value);
    const { behavior, reason } = applies ? stated : allowed;
    decide(call, behavior, "policy", reason);
    if (behavior === "deny") throw new Refusal("permission_denied", reason.message, "denied", "denied");
    if (behavior === "allow") return execute(call, tool, request.arguments);
    step(call, "awaiting_approval");
    emit("tool.permission.requested", { invocation_id: call.invocation_id });
    put("tool_invocation", call);
    waiting.set(call.invocation_id, { call, tool, args: request.arguments });
    return { invocation_id: call.invocation_id, result: null };
  });
}

function answer({ invocation_id, approved, reason = "", arguments: edited }) {
  if (edited) throw new Lacks("changes of the input");
  const { call, tool, args } = waiting.get(invocation_id);
  waiting.delete(invocation_id);
  decide(call, approved ? "allow" : "deny", "person", { type: "other", rule_ref: "answer", message: reason });
  return guarded(call, tool, () => {
    if (!approved) throw new Refusal("approval_rejected", reason || "rejected", "denied", "rejected");
    step(call, "approved");
    return execute(call, tool, args);
  });
}

const methods = {
  initialize: () => ({ name: "subject.mjs", version: "1" }),
  declare(params) {
    [tools, setup, records, ran, waiting] = [new Map(), params, [], [], new Map()];
    return { declarations: params.tools.map(declare) };
  },
  invoke({ calls, cancel, scheduler_policy }) {
    if (cancel || scheduler_policy) throw new Lacks(cancel ? "cancellation" : "scheduling of calls that run together");
    return { calls: calls.map(invoke) };
  },
  answer,
  records: () => ({ records, ran }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  let reply;
  try {
    if (!methods[method]) throw new Lacks(method);
    reply = { result: methods[method](params) };
  } catch (error) {
    reply = { error: { code: error instanceof Lacks ? -32601 : -32603, message: error.message } };
  }
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...reply }) + "\n");
});
