import { type Json, recordAt, recordsAt, textAt } from '../json.ts'

/** Tool calls that are remembered. */
const MAX_CALLS = 1_000

interface Call {
  readonly title: string
  readonly kind: string
  readonly rawInput: Json
  readonly content: readonly Json[]
  readonly path: string | undefined
  isReported: boolean
}

/** Names of Claude's tools, which events, titles and pages know, by kind. */
const NAMES: Readonly<Record<string, string>> = {
  read: 'Read',
  edit: 'Edit',
  execute: 'Bash',
  search: 'Grep',
  fetch: 'WebFetch',
}

const DONE: readonly string[] = ['completed', 'failed']

/** Tool calls of the Agent Client Protocol as blocks of Claude's messages. */
export class AcpTools {
  readonly #calls = new Map<string, Call>()
  #plans = 0

  /** A call that began or changed: the blocks that report it. The call is reported once its input is known. */
  update(update: Json): readonly Json[] {
    const id = textAt(update, 'toolCallId') ?? ''
    const call = merge(this.#calls.get(id), update)
    if (this.#calls.size < MAX_CALLS || this.#calls.has(id)) this.#calls.set(id, call)
    const status = textAt(update, 'status') ?? 'pending'
    if (status === 'pending') return []
    const blocks: Json[] = []
    if (!call.isReported) {
      call.isReported = true
      blocks.push({ type: 'tool_use', id, ...describeCall(call) })
    }
    if (DONE.includes(status)) {
      this.#calls.delete(id)
      blocks.push(resultBlock(id, call, update, status === 'failed'))
    }
    return blocks
  }

  /** Name and input of a call. */
  describe(id: string): { readonly name: string; readonly input: Json } {
    const call = this.#calls.get(id)
    return call === undefined ? { name: 'tool', input: {} } : describeCall(call)
  }

  /** The list of tasks, as the call of Claude's tool that replaces it. */
  plan(update: Json): readonly Json[] {
    this.#plans += 1
    const id = `plan-${this.#plans}`
    return [
      { type: 'tool_use', id, name: 'TodoWrite', input: { todos: recordsAt(update, 'entries') } },
      { type: 'tool_result', tool_use_id: id, content: '' },
    ]
  }
}

function merge(known: Call | undefined, update: Json): Call {
  const rawInput = recordAt(update, 'rawInput')
  const content = recordsAt(update, 'content')
  return {
    title: textAt(update, 'title') ?? known?.title ?? '',
    kind: textAt(update, 'kind') ?? known?.kind ?? 'other',
    // Later updates, such as a request for permission, repeat the input in other forms.
    rawInput: (known?.isReported === true ? undefined : rawInput) ?? known?.rawInput ?? {},
    content: content.length === 0 ? (known?.content ?? []) : content,
    path: textAt(recordsAt(update, 'locations')[0], 'path') ?? known?.path,
    isReported: known?.isReported ?? false,
  }
}

function describeCall({ title, kind, rawInput, content, path }: Call): {
  readonly name: string
  readonly input: Json
} {
  if (Array.isArray(rawInput['todos'])) return { name: 'TodoWrite', input: rawInput }
  const diff = diffOf(content)
  const file = textAt(diff, 'path') ?? textAt(rawInput, 'filePath') ?? path
  if (kind === 'edit' && file !== undefined) {
    const before = textAt(diff, 'oldText') ?? textAt(rawInput, 'oldString')
    const after =
      textAt(diff, 'newText') ?? textAt(rawInput, 'newString') ?? textAt(rawInput, 'content') ?? ''
    if (before === undefined || before === '')
      return { name: 'Write', input: { file_path: file, content: after } }
    return { name: 'Edit', input: { file_path: file, old_string: before, new_string: after } }
  }
  const name = Object.hasOwn(NAMES, kind) ? (NAMES[kind] ?? title) : title
  return {
    name,
    input: { ...rawInput, ...(kind === 'read' && file !== undefined ? { file_path: file } : {}) },
  }
}

function diffOf(content: readonly Json[]): Json | undefined {
  return content.find((part) => part['type'] === 'diff')
}

function resultBlock(id: string, call: Call, update: Json, isError: boolean): Json {
  const texts = call.content
    .filter((part) => part['type'] === 'content')
    .map((part) => textAt(recordAt(part, 'content'), 'text') ?? '')
  const output = recordAt(update, 'rawOutput')
  const text =
    texts.length > 0 ? texts.join('\n') : (textAt(output, 'output') ?? textAt(output, 'error') ?? '')
  const diff = diffOf(call.content)
  const isCreated =
    (diff !== undefined && (diff['oldText'] ?? null) === null) ||
    recordAt(output, 'metadata')?.['exists'] === false
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: text,
    ...(isError ? { is_error: true } : {}),
    ...(isCreated ? { structured: { type: 'create' } } : {}),
  }
}
