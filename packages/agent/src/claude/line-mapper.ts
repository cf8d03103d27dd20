import { boundText, boundValue } from '../bound.ts'
import type { DriverEffect } from '../driver.ts'
import { MAX_INPUT_CHARS, MAX_TEXT_CHARS, type RunEvent } from '../event.ts'
import { isRecord, type Json, numberAt, recordAt, recordsAt, textAt } from '../json.ts'
import { planEvent } from '../plan.ts'
import { type Redactor, StreamRedactor } from '../redact.ts'
import { TodoList } from '../todo.ts'
import { FILE_TOOLS, titleOf } from '../tool-title.ts'
import { UsageTotal } from '../usage.ts'
import { resultText } from './own-line.ts'

/** Tool calls whose result has not come yet. */
const MAX_OPEN_CALLS = 1_000
const MAX_ANNOUNCED = 10_000

interface OpenCall {
  readonly name: string
  readonly input: Json
}

/**
 * Maps the lines of Claude's stream-json that report on the work to events. Lines are redacted and bounded already, except those of
 * partial messages, which are redacted here. Requests and results are the driver's.
 */
export class LineMapper {
  readonly #redactor: Redactor
  readonly #workspace: string
  readonly #calls = new Map<string, OpenCall>()
  readonly #todo = new TodoList()
  readonly #streams = new Map<string, StreamRedactor>()
  readonly usage = new UsageTotal()
  readonly announcedFiles = new Map<string, 'create' | 'modify'>()

  constructor(redactor: Redactor, workspace: string) {
    this.#redactor = redactor
    this.#workspace = workspace.replace(/\/+$/, '')
  }

  /** One line of the main agent or a subagent: text, or a tool call. */
  assistant(line: Json): readonly RunEvent[] {
    const message = recordAt(line, 'message')
    const id = textAt(message, 'id')
    // The program's own messages, such as about an error of the API.
    const isSynthetic = textAt(message, 'model') === '<synthetic>'
    if (id !== undefined && !isSynthetic)
      this.usage.message(subagentOf(line) ?? '', id, recordAt(message, 'usage'))
    const origin = originOf(line)
    return recordsAt(message, 'content').flatMap((block): readonly RunEvent[] => {
      switch (block['type']) {
        case 'text':
          return this.#text(textAt(block, 'text') ?? '', origin)
        case 'thinking': {
          const text = boundText(textAt(block, 'thinking') ?? '', MAX_TEXT_CHARS).text
          return text === '' ? [] : [{ type: 'text', text, thinking: true, ...origin }]
        }
        case 'tool_use':
          return this.#toolCall(block, origin)
        default:
          return []
      }
    })
  }

  /** Results of tools. */
  user(line: Json): readonly RunEvent[] {
    const structured = recordAt(line, 'tool_use_result')
    const origin = originOf(line)
    return recordsAt(recordAt(line, 'message'), 'content').flatMap((block) =>
      block['type'] === 'tool_result' ? this.#toolResult(block, structured, origin) : [],
    )
  }

  /** A piece of a message that is being written. */
  partial(line: Json): readonly DriverEffect[] {
    const event = recordAt(line, 'event')
    const conversation = subagentOf(line) ?? ''
    switch (event?.['type']) {
      case 'message_start': {
        const message = recordAt(event, 'message')
        const id = textAt(message, 'id')
        if (id !== undefined) this.usage.message(conversation, id, recordAt(message, 'usage'))
        this.#dropStreams(conversation)
        return []
      }
      case 'message_delta': {
        const id = this.usage.currentId(conversation)
        if (id === undefined) return []
        this.usage.message(conversation, id, recordAt(event, 'usage'))
        return [{ kind: 'emit', event: { type: 'usage', ...this.usage.total } }]
      }
      case 'content_block_delta':
        return this.#delta(line, event, conversation)
      case 'content_block_stop':
        return [...this.#endDelta(line, event, conversation), this.#partialLine(line)]
      default:
        return [this.#partialLine(line)]
    }
  }

  #delta(line: Json, event: Json, conversation: string): readonly DriverEffect[] {
    const piece = pieceOf(recordAt(event, 'delta'))
    if (piece === undefined) return [this.#partialLine(line)]
    const key = streamKey(conversation, piece.kind, event)
    const stream = this.#streams.get(key) ?? new StreamRedactor(this.#redactor)
    this.#streams.set(key, stream)
    return this.#partial(piece.kind, stream.push(piece.text), line, conversation)
  }

  #partialLine(line: Json): DriverEffect {
    const redacted = this.#redactor.value(line)
    return { kind: 'partial_line', line: isRecord(redacted) ? redacted : {} }
  }

  /** A message that was cut off leaves its last piece, which its repetition brings again. */
  #dropStreams(conversation: string): void {
    for (const key of this.#streams.keys()) if (key.startsWith(`${conversation} `)) this.#streams.delete(key)
  }

  #endDelta(line: Json, event: Json, conversation: string): readonly DriverEffect[] {
    return (['text', 'thinking', 'input'] as const).flatMap((kind) => {
      const key = streamKey(conversation, kind, event)
      const rest = this.#streams.get(key)?.end() ?? ''
      this.#streams.delete(key)
      return this.#partial(kind, rest, line, conversation)
    })
  }

  #partial(
    kind: 'text' | 'thinking' | 'input',
    text: string,
    line: Json,
    conversation: string,
  ): readonly DriverEffect[] {
    if (text === '') return []
    const messageId = this.usage.currentId(conversation) ?? ''
    const [type, field] = DELTA_FIELDS[kind]
    const index = numberAt(recordAt(line, 'event'), 'index') ?? 0
    const event = { type: 'content_block_delta', index, delta: { type, [field]: text } }
    return [
      { kind: 'partial', partial: { kind, messageId, text, ...originOf(line) } },
      this.#partialLine({ ...line, event }),
    ]
  }

  #text(text: string, origin: Origin): readonly RunEvent[] {
    if (text === '') return []
    const bound = boundText(text, MAX_TEXT_CHARS).text
    const event: RunEvent = { type: 'text', text: bound, ...origin }
    // Subagents report to the agent, not to people.
    return origin.subagent === undefined ? [event, { type: 'stdout', data: `${bound}\n` }] : [event]
  }

  #toolCall(block: Json, origin: Origin): readonly RunEvent[] {
    const id = textAt(block, 'id') ?? ''
    const name = textAt(block, 'name') ?? ''
    const input = recordAt(block, 'input') ?? {}
    if (this.#calls.size < MAX_OPEN_CALLS) this.#calls.set(id, { name, input })
    const events: RunEvent[] = [
      {
        type: 'tool_call',
        id,
        name,
        title: titleOf(name, input),
        input: boundValue(input, MAX_INPUT_CHARS),
        ...origin,
      },
    ]
    const plan = name === 'ExitPlanMode' ? textAt(input, 'plan') : undefined
    if (plan !== undefined) events.push(planEvent(plan))
    const todo = this.#todo.called(name, input)
    if (todo !== undefined) events.push(todo)
    return events
  }

  #toolResult(block: Json, structured: Json | undefined, origin: Origin): readonly RunEvent[] {
    const id = textAt(block, 'tool_use_id') ?? ''
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    const isError = block['is_error'] === true
    const omittedChars = numberAt(block, 'omittedChars') ?? 0
    const events: RunEvent[] = [
      {
        type: 'tool_result',
        id,
        ...(call === undefined ? {} : { name: call.name }),
        isError,
        content: resultText(block['content']),
        ...(omittedChars === 0 ? {} : { omittedChars }),
        ...origin,
      },
    ]
    if (call === undefined || isError) return events
    const change = this.#fileChange(call, structured)
    if (change !== undefined) events.push(change)
    const todo = this.#todo.succeeded(call.name, call.input, structured)
    if (todo !== undefined) events.push(todo)
    return events
  }

  #fileChange({ name, input }: OpenCall, structured: Json | undefined): RunEvent | undefined {
    const field = Object.hasOwn(FILE_TOOLS, name) ? FILE_TOOLS[name] : undefined
    const file = field === undefined ? undefined : textAt(input, field)
    const path = file === undefined ? undefined : pathWithin(this.#workspace, file)
    if (path === undefined) return undefined
    const isCreated = textAt(structured, 'type') === 'create'
    const action = isCreated || this.announcedFiles.get(path) === 'create' ? 'create' : 'modify'
    if (this.announcedFiles.size < MAX_ANNOUNCED) this.announcedFiles.set(path, action)
    return { type: 'file_change', path, action: isCreated ? 'create' : 'modify' }
  }
}

/** The path relative to a folder, which is also the program's working folder; undefined when it is not inside. */
function pathWithin(folder: string, file: string): string | undefined {
  const segments: string[] = []
  for (const segment of (file.startsWith('/') ? file : `${folder}/${file}`).split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  const absolute = `/${segments.join('/')}`
  return absolute.startsWith(`${folder}/`) ? absolute.slice(folder.length + 1) : undefined
}

interface Origin {
  readonly subagent?: string
}

function streamKey(conversation: string, kind: string, event: Json): string {
  return `${conversation} ${kind} ${numberAt(event, 'index') ?? 0}`
}

function subagentOf(line: Json): string | undefined {
  return textAt(line, 'parent_tool_use_id')
}

function originOf(line: Json): Origin {
  const subagent = subagentOf(line)
  return subagent === undefined ? {} : { subagent }
}

/** Type of the API's delta, and its field with the text, for each kind of text. */
const DELTA_FIELDS = {
  text: ['text_delta', 'text'],
  thinking: ['thinking_delta', 'thinking'],
  input: ['input_json_delta', 'partial_json'],
} as const

function pieceOf(
  delta: Json | undefined,
): { readonly kind: keyof typeof DELTA_FIELDS; readonly text: string } | undefined {
  for (const kind of ['text', 'thinking', 'input'] as const) {
    const [type, field] = DELTA_FIELDS[kind]
    const text = textAt(delta, 'type') === type ? textAt(delta, field) : undefined
    if (text !== undefined) return { kind, text }
  }
  return undefined
}
