// Speaks the part of Claude Code's stream-json that /ws/claude-stream depends on. A message is a command: "say TEXT", "args", "ask TOOL",
// "unauthorized", "exit CODE", "raw TEXT", "line BYTES", "fill BYTES", "count LINES", "pieces", or "when FILE COMMAND", which waits for a file of the workspace.

import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

const answers = new Map<string, (response: unknown) => void>()

/** As the real program describes it. */
const account = { tokenSource: process.env['FAKE_LOGIN'] ?? 'claude.ai', apiProvider: 'firstParty' }

function emit(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function assistant(text: string, more: object = {}): void {
  emit({
    type: 'assistant',
    message: { role: 'assistant', content: [{ type: 'text', text }] },
    ...more,
    uuid: crypto.randomUUID(),
  })
}

async function perform(command: string): Promise<void> {
  const [name = '', ...words] = command.split(' ')
  const text = words.join(' ')
  switch (name) {
    case 'say':
      return assistant(text)
    case 'args':
      return assistant(JSON.stringify({ args: process.argv.slice(2), env: process.env, cwd: process.cwd() }))
    case 'ask': {
      const id = crypto.randomUUID()
      const answered = new Promise((resolve) => answers.set(id, resolve))
      const request = {
        subtype: 'can_use_tool',
        tool_name: text,
        input: { command: 'ls' },
        tool_use_id: `use-${id}`,
      }
      emit({ type: 'control_request', request_id: id, request })
      const response = JSON.stringify(await answered)
      const content = [{ type: 'tool_result', tool_use_id: `use-${id}`, content: response }]
      return emit({ type: 'user', message: { role: 'user', content }, uuid: crypto.randomUUID() })
    }
    case 'unauthorized':
      return assistant('Not logged in', { error: 'authentication_failed' })
    case 'exit':
      process.exit(Number(text))
    case 'raw':
      return void process.stdout.write(`${text}\n`)
    case 'line':
      return assistant('x'.repeat(Number(text)))
    case 'fill':
      for (let left = Number(text); left > 0; left -= 10_000) assistant('x'.repeat(10_000))
      return
    case 'count':
      for (let number = 0; number < Number(text); number += 1) {
        emit({ type: 'stream_event', event: { number }, uuid: crypto.randomUUID() })
        assistant(`number ${number}`)
        if (number % 5 === 0) await Bun.sleep(1)
      }
      return
    case 'pieces':
      for (const piece of ['a', 'b']) emit({ type: 'stream_event', event: { piece }, uuid: piece })
      return
    case 'when': {
      const [file = '', ...rest] = words
      while (!existsSync(file)) await Bun.sleep(10)
      return perform(rest.join(' '))
    }
  }
}

interface Input {
  readonly type: string
  readonly request_id?: string
  readonly message?: { readonly content: string }
  readonly response?: { readonly request_id: string; readonly response: unknown }
}

createInterface({ input: process.stdin }).on('line', (text) => {
  const { type, request_id, message, response } = JSON.parse(text) as Input
  if (type === 'control_request')
    emit({ type: 'control_response', response: { subtype: 'success', request_id, response: { account } } })
  if (type === 'control_response') answers.get(response?.request_id ?? '')?.(response?.response)
  if (type !== 'user') return
  emit({ type: 'system', subtype: 'init', model: 'fake', uuid: crypto.randomUUID() })
  const command = message?.content ?? ''
  void perform(command).then(() =>
    emit({
      type: 'result',
      subtype: 'success',
      is_error: command === 'unauthorized',
      uuid: crypto.randomUUID(),
    }),
  )
})
