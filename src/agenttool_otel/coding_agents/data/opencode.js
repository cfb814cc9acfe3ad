// agenttool-hook: written by agenttool hooks install opencode, which also removes it. An edited file is left alone.
import { spawn } from "node:child_process"

const COMMAND = "@COMMAND@"
const SECONDS = "@SECONDS@"

// Resolves with what the client printed; any status but 0 is an error, with the reason from standard error.
function ask(part, event, payload) {
  return new Promise((resolve, reject) => {
    const [program, ...words] = COMMAND[part]
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] })
    const late = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error("blocked by agenttool: the hook is too slow"))
    }, SECONDS * 1000)
    let printed = ""
    let reason = ""
    child.stdout.on("data", (data) => (printed += data))
    child.stderr.on("data", (data) => (reason += data))
    child.stdin.on("error", () => {})
    child.on("error", (error) => {
      clearTimeout(late)
      reject(new Error(`blocked by agenttool: ${error.message}`))
    })
    child.on("close", (status) => {
      clearTimeout(late)
      if (status === 0) resolve(printed)
      else reject(new Error(reason.trim() || "blocked by agenttool"))
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

// What is no answer of ours throws, and so blocks the call.
function change(args, printed) {
  const changed = JSON.parse(printed).arguments
  if (typeof changed !== "object" || changed === null) throw new Error("blocked by agenttool")
  Object.assign(args, changed)
}

export const Agenttool = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const printed = await ask("decide", "tool.execute.before", { directory, input, output })
    if (printed !== "") change(output.args, printed)
  },
  "tool.execute.after": async (input, output) => {
    // the call has run: what goes wrong here must not change its result
    await ask("record", "tool.execute.after", { directory, input, output }).catch(() => {})
  },
})
