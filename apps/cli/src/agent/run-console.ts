import { formatEvent, type InputRequest, type NumberedEvent, withoutControls } from '@sandwire/agent'

/** What the console wants done. */
export type ConsoleEffect =
  | { readonly type: 'print'; readonly text: string }
  | { readonly type: 'message'; readonly text: string }
  | {
      readonly type: 'approve'
      readonly requestId: string
      readonly answer: {
        readonly decision: 'allow' | 'deny'
        readonly message?: string
        readonly acceptsEdits?: boolean
        readonly answers?: Readonly<Record<string, string>>
      }
    }
  | { readonly type: 'interrupt' }
  | { readonly type: 'abort' }
  /** Leave the run working. */
  | { readonly type: 'detach' }

const CTRL_C = '\u0003'
const CTRL_U = '\u0015'
const ESCAPE_KEY = '\u001d'
const ERASES = ['\u007f', '\b']
/** A second Ctrl-C within this time aborts the run. */
const TWICE_MS = 3_000
const MAX_LINE_CHARS = 16 * 1024
/** Characters of a tool's input that are shown with a request. */
const MAX_INPUT_CHARS = 800

type Question = NonNullable<InputRequest['questions']>[number]

function describeQuestion({ question, options }: Question): string {
  const lines = options.map(({ label, description }, at) => `  ${at + 1}) ${label}  ${description}\n`)
  return `${question}\n${lines.join('')}`
}

function describeRequest({ prompt, kind, tool, questions = [] }: InputRequest): string {
  const [first] = questions
  // Questions are asked one after the other.
  if (kind === 'question' && first !== undefined) return describeQuestion(first)
  const input = tool === undefined ? '' : JSON.stringify(tool.input, undefined, 2)
  const shown = input.length > MAX_INPUT_CHARS ? `${input.slice(0, MAX_INPUT_CHARS)}…` : input
  return `${prompt}\n${shown === '' ? '' : `${shown}\n`}`
}

const HELP: Readonly<Record<InputRequest['kind'], string>> = {
  permission: 'y: allow, a: allow and accept further edits, n or a reason: deny',
  plan: 'y: accept the plan, or say what to change',
  question: 'answer by number or in your own words',
  message: 'the agent waits for a message; Ctrl-C twice ends the run',
}

/** A run on a terminal: events become text, keys become requests. Does no I/O itself. */
export class RunConsole {
  readonly #pending = new Map<string, InputRequest>()
  /** Answers to the first questions of the oldest request. */
  #answers: ReadonlyMap<string, string> = new Map()
  #line = ''
  #interruptedMs = Number.NEGATIVE_INFINITY
  #todo = ''
  #calls = 0
  #costUsd = 0
  #state = 'queued'
  #hasStateEvent = false

  /** What an event prints. */
  event(entry: NumberedEvent): readonly ConsoleEffect[] {
    const { event } = entry
    if (event.type === 'todo') {
      const done = event.items.filter(({ status }) => status === 'completed').length
      this.#todo = `${done}/${event.items.length}${event.active === undefined ? '' : ` ${event.active}`}`
    } else if (event.type === 'tool_call') this.#calls += 1
    else if (event.type === 'usage') this.#costUsd = event.costUsd ?? this.#costUsd
    else if (event.type === 'status' && event.status === 'state') {
      this.#state = event.state === 'turn' ? 'working' : event.state
      this.#hasStateEvent = true
      // It waited for a message, which it has now.
      if (event.state === 'turn')
        for (const { requestId, kind } of this.#pending.values())
          if (kind === 'message') this.#pending.delete(requestId)
    } else if (event.type === 'status' && event.status === 'approval') this.#remove(event.requestId)
    if (event.type === 'awaiting_input') {
      this.#pending.set(event.requestId, event)
      return [print(`? ${withoutControls(describeRequest(event))}  (${HELP[event.kind]})\n`)]
    }
    const text = formatEvent(entry)
    return text === '' ? [] : [print(text)]
  }

  /** The state of a run that has no events yet. */
  setState(state: string): void {
    if (!this.#hasStateEvent) this.#state = state
  }

  setCost(costUsd: number): void {
    this.#costUsd = Math.max(this.#costUsd, costUsd)
  }

  /** What typed keys do. */
  keys(data: string, nowMs: number): readonly ConsoleEffect[] {
    const effects: ConsoleEffect[] = []
    for (const key of data) {
      if (key === ESCAPE_KEY) return [...effects, { type: 'detach' }]
      if (key === CTRL_C) {
        effects.push({ type: nowMs - this.#interruptedMs < TWICE_MS ? 'abort' : 'interrupt' })
        this.#interruptedMs = nowMs
        this.#line = ''
      } else if (key === '\r' || key === '\n') effects.push(...this.#enter())
      else if (key === CTRL_U) this.#line = ''
      else if (ERASES.includes(key)) this.#line = Array.from(this.#line).slice(0, -1).join('')
      else if (key >= ' ' && this.#line.length < MAX_LINE_CHARS) this.#line += key
    }
    return effects
  }

  /** The last line of the terminal: what is being typed, or how the run is doing. */
  statusLine(columns: number): string {
    const facts = [
      this.#state,
      `$${this.#costUsd.toFixed(2)}`,
      `${this.#calls} tool calls`,
      ...(this.#todo === '' ? [] : [`todo ${withoutControls(this.#todo).replaceAll('\n', ' ')}`]),
      ...(this.#pending.size === 0 ? [] : [`${this.#pending.size} waiting for you`]),
    ]
    const text = this.#line === '' ? `[${facts.join(' | ')}]` : `> ${this.#line}`
    return Array.from(text)
      .slice(this.#line === '' ? 0 : -(columns - 1))
      .slice(0, columns - 1)
      .join('')
  }

  #enter(): readonly ConsoleEffect[] {
    const line = this.#line.trim()
    this.#line = ''
    if (line === '') return []
    const [request] = [...this.#pending.values()].filter(({ kind }) => kind !== 'message')
    // Its receipt, which comes as an event, shows it.
    if (request === undefined) return [{ type: 'message', text: line }]
    const echo = print(`< ${line}\n`)
    const { requestId, questions = [] } = request
    const [question, next] = questions.filter((each) => !this.#answers.has(each.question))
    if (request.kind !== 'question' || question === undefined) {
      this.#remove(requestId)
      return [echo, { type: 'approve', requestId, answer: answerOf(line) }]
    }
    this.#answers = new Map([...this.#answers, [question.question, chosen(question, line)]])
    if (next === undefined) {
      const answers = Object.fromEntries(this.#answers)
      this.#remove(requestId)
      return [echo, { type: 'approve', requestId, answer: { decision: 'allow', answers } }]
    }
    return [echo, print(`? ${withoutControls(describeQuestion(next))}  (${HELP.question})\n`)]
  }

  #remove(requestId: string): void {
    const [oldest] = [...this.#pending.values()].filter(({ kind }) => kind !== 'message')
    if (oldest?.requestId === requestId) this.#answers = new Map()
    this.#pending.delete(requestId)
  }
}

function print(text: string): ConsoleEffect {
  return { type: 'print', text }
}

type Answer = Extract<ConsoleEffect, { type: 'approve' }>['answer']

/** The options of a question by their numbers, or the line itself. */
function chosen({ options, allowsMany }: Question, line: string): string {
  const words = allowsMany ? line.split(/[\s,]+/) : [line]
  const labels = words.map((word) => options[Number(word) - 1]?.label)
  return labels.every((label) => label !== undefined) ? labels.join(', ') : line
}

function answerOf(line: string): Answer {
  if (/^y(es)?$/i.test(line)) return { decision: 'allow' }
  if (/^a(lways)?$/i.test(line)) return { decision: 'allow', acceptsEdits: true }
  return /^no?$/i.test(line) ? { decision: 'deny' } : { decision: 'deny', message: line }
}
