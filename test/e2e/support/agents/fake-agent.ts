// Speaks enough of Claude Code's stream-json to show faults that the real program does not make on demand. The task is a JSON list of
// steps, which run in order: {"say": text}, {"write": [path, text]}, {"run": command}, {"raw": text}, {"line": bytes}, {"flood": [messages, chars]},
// {"ask": tool}, {"wait": true} for a message, {"sleep": ms}, {"result": text}, {"exit": code}, {"die": signal}, {"ignore": "TERM"},
// {"hang": true}, {"cut": true} for half a line.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const session = crypto.randomUUID()
let messages = 0
const inbox: string[] = []
const waiting: (() => void)[] = []
const answers = new Map<string, (response: unknown) => void>()
let isInterrupted = false

function emit(line: object): void {
  process.stdout.write(`${JSON.stringify({ session_id: session, parent_tool_use_id: null, ...line })}\n`)
}

function emitText(text: string): void {
  messages += 1
  const message = {
    id: `msg-${messages}`,
    role: 'assistant',
    content: [{ type: 'text', text }],
    usage: { input_tokens: 10, output_tokens: 2 },
  }
  emit({ type: 'assistant', message })
}

function emitResult(text: string, isError = false): void {
  emit({
    type: 'result',
    subtype: 'success',
    is_error: isError,
    result: text,
    total_cost_usd: 0.001 * messages,
  })
}

const hang = (): Promise<never> => new Promise(() => setInterval(() => undefined, 60_000))

async function nextMessage(): Promise<string> {
  while (inbox.length === 0) await new Promise<void>((resolve) => waiting.push(resolve))
  return inbox.shift() ?? ''
}

type Step = Readonly<Record<string, unknown>>

const actions: Readonly<Record<string, (value: never) => unknown>> = {
  say: (text: string) => emitText(text),
  write: ([file, text]: [string, string]) => writeFileSync(file, text),
  run: (command: string) => void spawnSync('sh', ['-c', command]),
  raw: (text: string) => process.stdout.write(text),
  stderr: (text: string) => process.stderr.write(text),
  flood: ([count, chars]: [number, number]) => {
    for (let number = 0; number < count; number += 1) emitText(`${number} ${'x'.repeat(chars)}`)
  },
  line: (bytes: number) =>
    emit({ type: 'assistant', message: { content: [{ type: 'text', text: 'x'.repeat(bytes) }] } }),
  ask: async (tool: string) => {
    const id = crypto.randomUUID()
    const answered = new Promise((resolve) => answers.set(id, resolve))
    emit({
      type: 'control_request',
      request_id: id,
      request: { subtype: 'can_use_tool', tool_name: tool, input: { command: 'x' } },
    })
    emitText(JSON.stringify(await answered))
  },
  wait: async () => emitText(`heard ${await nextMessage()}`),
  sleep: (ms: number) => Bun.sleep(ms),
  result: (text: string) => emitResult(text),
  exit: (code: number) => process.exit(code),
  die: (signal: NodeJS.Signals) => (process.kill(process.pid, signal), hang()),
  ignore: (signal: string) => void process.on(`SIG${signal}`, () => undefined),
  hang,
  cut: () => (
    process.stdout.write('{"type":"assistant","message":{"content":[{"type":"te'),
    process.kill(process.pid, 'SIGKILL'),
    hang()
  ),
}

async function runTask(task: string): Promise<void> {
  emit({ type: 'system', subtype: 'init', model: 'fake', claude_code_version: '0' })
  for (const step of JSON.parse(task) as readonly Step[])
    for (const [name, value] of Object.entries(step)) {
      if (isInterrupted) return
      await actions[name]?.(value as never)
    }
}

/** `stubborn` agents do not react to an interrupt or the end of their input. */
let isStubborn = false
const input = createInterface({ input: process.stdin })
input.on('line', (text) => {
  const line = JSON.parse(text) as {
    type: string
    uuid?: string
    message?: { content: string }
    request?: { subtype: string }
    response?: { request_id: string; response: unknown }
  }
  if (line.type === 'control_response')
    answers.get(line.response?.request_id ?? '')?.(line.response?.response)
  if (line.type === 'control_request' && line.request?.subtype === 'interrupt' && !isStubborn) {
    isInterrupted = true
    emitResult('interrupted', true)
  }
  if (line.type !== 'user') return
  const content = line.message?.content ?? ''
  isInterrupted = false
  for (const state of ['queued', 'started', 'completed'])
    emit({ type: 'command_lifecycle', command_uuid: line.uuid, state })
  if (content.startsWith('[')) {
    isStubborn = content.includes('"hang"')
    void runTask(content)
    return
  }
  inbox.push(content)
  waiting.shift()?.()
})
input.on('close', () => {
  if (!isStubborn) process.exit(0)
})
