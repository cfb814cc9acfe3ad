// A tool in TypeScript whose calls are decided by `agenttool serve`:
//   node remote_tool.js /run/user/1000/agenttool/serve.sock /srv/project notes.txt
// No answer, another status than 200 and an answer that can't be read mean: do not run.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";

type Call = { invocation_id: string; call_id: string; state: string; reason?: string; arguments?: { path: string } };

const [socketPath, root, path] = process.argv.slice(2);

/** Send one request to the decision point, and return its answer. */
function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const data = body === undefined ? "" : JSON.stringify(body);
    const headers = { host: "localhost", "content-type": "application/json", "content-length": Buffer.byteLength(data) };
    const options = { socketPath, method, path, headers, timeout: 90_000 };
    const sent = request(options, (answer) => read<T>(answer).then(resolve, reject));
    sent.on("timeout", () => sent.destroy(new Error("the decision point is too slow")));
    sent.on("error", reject);
    sent.end(data);
  });
}

async function read<T>(answer: IncomingMessage): Promise<T> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  const text = Buffer.concat(parts).toString();
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}: ${text}`);
  return JSON.parse(text) as T;
}

async function main(): Promise<void> {
  const id = randomUUID();
  let call = await ask<Call>("POST", "/v1/invocations", {
    subject: { type: "agent", id: "coder" },
    action: { name: "read_file" },
    resource: { type: "tool_call", id, properties: { path: `${root}/${path}` } },
    context: { session_id: "s-1", roots: [root], cwd: root, interactive: true },
  });
  const place = `/v1/invocations/${encodeURIComponent(call.invocation_id)}`;
  while (call.state === "waiting") call = await ask<Call>("GET", `${place}?wait=30`);
  if (call.state !== "permitted" || call.call_id !== id || !call.arguments) {
    console.log(`not run: ${call.reason ?? call.state}`);
    return;
  }
  // what was permitted, not what was sent: a person may have changed it
  const body = await readFile(call.arguments.path, "utf-8").then(
    (result) => ({ result }),
    (error: Error) => ({ error: error.message }),
  );
  const done = await ask<{ state: string; result: { content: unknown } }>("POST", `${place}/result`, body);
  console.log(`${done.state}: ${JSON.stringify(done.result.content)}`);
}

main().catch((error: Error) => {
  console.log(`not run: ${error.message}`);
  process.exitCode = 1;
});
