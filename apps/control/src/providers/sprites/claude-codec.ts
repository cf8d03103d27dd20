import {
  answerLine,
  type ClaudeRequest,
  INITIALIZE_ID,
  initializeLine,
  interruptLine,
  type Json,
  type Line,
  LineSplitter,
  parseClaudeRequest,
  parseRecord,
  recordAt,
  settingLine,
  textAt,
  unsupportedLine,
  userLine,
} from '@sandwire/agent'
import { claudeClose, type ClaudeServerMessage, encodeClaudeMessage } from '@sandwire/internal-api'
import type { ClaudeSession } from './claude-session.ts'
import type { ExecCodec, ExecEffect, ExecOutput, ExecReplay } from './exec-codec.ts'
import { CLAUDE_ENV } from './layout.ts'

/** A line of the program; what it reads of files and images is in one. */
const MAX_LINE_BYTES = 4 * 1024 * 1024
const MAX_STDERR_LINE_BYTES = 64 * 1024
/** Earlier lines that are held until the last one is found that a client was sent: more than the API replays. */
const MAX_HELD_CHARS = 2 * 1024 * 1024
/** Requests for permission that wait for an answer. */
const MAX_PENDING = 64
const MAX_ID_CHARS = 200
/** Exit codes of a shell that could not start a program. */
const NOT_STARTED: readonly number[] = [126, 127]

const NOT_INSTALLED = `Cannot start the agent: Claude Code is not installed in the sprite. Install it there, or add its folder to PATH in ${CLAUDE_ENV}`
const NOT_SIGNED_IN = `Cannot start the agent: Claude Code is not signed in in the sprite, or its login is no longer accepted. Run "claude" in a terminal of the sprite and sign in`
const LOST =
  'Lines of the agent may be missing here: the Sprites API did not keep all that it wrote while no client was connected'
const CUT = 'Lines of the agent are missing here: it ended at once, and the Sprites API keeps 64 KiB of that'

export interface ClaudeCodecOptions {
  /** The session's name for the client. */
  readonly name: string
  readonly session: ClaudeSession
  /** The process was started for this client. */
  readonly isNew: boolean
  /** Bytes of earlier output that come first; undefined: the API did not say. */
  readonly historyBytes: number | undefined
  /** The client may send messages, answers and settings. */
  readonly mayInput: boolean
  readonly mintId: () => string
}

/** A request for permission that waits for an answer. */
interface PendingRequest {
  readonly text: string
  readonly tool: { readonly name: string; readonly input: Json }
  readonly toolUseId: string | undefined
}

/**
 * Translates between the messages of `/ws/claude-stream` and the lines of Claude Code in a sprite. The API replays output to a client
 * that joins, as much as it keeps of it: of that the client gets what no client has been sent.
 */
export class ClaudeCodec implements ExecCodec {
  readonly #options: ClaudeCodecOptions
  readonly #stdout = new LineSplitter(MAX_LINE_BYTES)
  readonly #stderr = new LineSplitter(MAX_STDERR_LINE_BYTES)
  readonly #pending = new Map<string, PendingRequest>()
  /** The last `system/init` before the line that is being read. */
  #init: string | undefined
  /** The last line that any client was sent before this one came, until it is found in the replay. */
  #mark: ClaudeSession['mark']
  #held: string[] = []
  #heldChars = 0
  /** Earlier output that is still expected; undefined: not known how much. */
  #historyBytes: number | undefined
  /** Lines with an id, from the start of the program. */
  #count: number
  #isReplaying: boolean
  #isStarted: boolean
  #hasExited = false

  constructor(options: ClaudeCodecOptions) {
    this.#options = options
    const { session, isNew, historyBytes } = options
    this.#mark = isNew ? null : session.mark
    this.#init = session.init ?? undefined
    this.#count = this.#mark?.count ?? 0
    this.#historyBytes = historyBytes
    this.#isReplaying = !isNew
    this.#isStarted = !isNew
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  get replay(): ExecReplay {
    if (!this.#isReplaying || this.#historyBytes === 0) return 'none'
    return this.#historyBytes === undefined && this.#mark === null ? 'possible' : 'expected'
  }

  get hasExited(): boolean {
    return this.#hasExited
  }

  greeting(): readonly ExecEffect[] {
    const { name, session, isNew } = this.#options
    const connected = toClient({
      type: 'system',
      subtype: 'connected',
      session_id: name,
      resumed: !isNew,
      settings: session.settings,
    })
    return isNew ? [connected, write(initializeLine())] : [connected]
  }

  output({ stream, bytes }: ExecOutput): readonly ExecEffect[] {
    const effects =
      stream === 'stdout'
        ? this.#stdout.push(bytes).flatMap((line) => this.#stdoutLine(line))
        : this.#stderr.push(bytes).flatMap(({ text }) => this.#stderrLine(text))
    if (this.#historyBytes !== undefined)
      this.#historyBytes = Math.max(0, this.#historyBytes - bytes.byteLength)
    return effects
  }

  replayed(): readonly ExecEffect[] {
    const released = this.#mark === null ? [] : this.#release()
    this.#isReplaying = false
    return released
  }

  cut(): readonly ExecEffect[] {
    return [error(CUT)]
  }

  exit(code: number): readonly ExecEffect[] {
    const rest = [
      ...this.#stdout.end().flatMap((line) => this.#stdoutLine(line)),
      ...this.#stderr.end().flatMap(({ text }) => this.#stderrLine(text)),
      ...this.replayed(),
    ]
    this.#hasExited = true
    const ended = toClient({ type: 'result', subtype: 'exit', exit_code: code })
    if (this.#isStarted || !NOT_STARTED.includes(code))
      return [...rest, ended, { do: 'close', code: 1000, reason: 'complete' }]
    const { last, ...close } = this.closeOf({ code: 'agent_not_configured', message: NOT_INSTALLED })
    return [...rest, { do: 'toClient', text: last }, ended, { do: 'close', ...close }]
  }

  fromClient(message: string | Uint8Array): readonly ExecEffect[] {
    const request = parseClaudeRequest(message)
    if (request.kind === 'ping') return [toClient({ type: 'pong' })]
    if (request.kind === 'initialize')
      return [toClient({ type: 'system', subtype: 'echo', payload: request.payload })]
    if (request.kind === 'invalid') return [error(request.problem)]
    if (!this.#options.mayInput) return [error('Cannot do this: this connection is read-only')]
    return this.#hasExited ? [] : this.#request(request)
  }

  closeOf(problem: Parameters<ExecCodec['closeOf']>[0]): ReturnType<ExecCodec['closeOf']> {
    return claudeClose(problem)
  }

  #request(
    request: Exclude<ClaudeRequest, { kind: 'ping' | 'initialize' | 'invalid' }>,
  ): readonly ExecEffect[] {
    const { mintId, session, name } = this.#options
    switch (request.kind) {
      case 'interrupt':
        return [
          write(interruptLine(mintId())),
          ...(request.isReported
            ? [toClient({ type: 'system', subtype: 'interrupted', session_id: name })]
            : []),
        ]
      case 'setting':
        session.set(request.setting)
        return [write(settingLine(mintId(), request.setting))]
      case 'message': {
        const { mode, text, content } = request
        const changed = mode === undefined || mode === session.mode ? undefined : mode
        return [
          ...(changed === undefined
            ? []
            : this.#request({ kind: 'setting', setting: { subtype: 'set_permission_mode', mode: changed } })),
          write(userLine(content ?? text, mintId())),
        ]
      }
      case 'answer':
        return this.#answer(request)
    }
  }

  /** The first answer counts; the other clients get the request withdrawn. */
  #answer({
    answer,
    permissions,
  }: Extract<ClaudeRequest, { readonly kind: 'answer' }>): readonly ExecEffect[] {
    const { requestId } = answer
    const request = this.#pending.get(requestId)
    if (request === undefined || !this.#options.session.answer(requestId))
      return [error('Cannot answer the request: it is not open, or was answered already')]
    this.#pending.delete(requestId)
    return [
      write(answerLine(request.tool, { ...answer, permissions })),
      { do: 'toOthers', text: withdrawn(requestId) },
    ]
  }

  #stdoutLine({ text, isCut }: Line): readonly ExecEffect[] {
    if (isCut) return [error(`A line of the agent with more than ${MAX_LINE_BYTES} bytes was left out`)]
    if (text.trim() === '') return []
    const line = parseRecord(text)
    if (line !== undefined) {
      this.#isStarted = true
      this.#observe(text, line)
    }
    if (this.#mark === null) return this.#show(text, line)
    if (line !== undefined && idOf(line) === this.#mark.id) return this.#found()
    this.#held.push(text)
    this.#heldChars += text.length
    return this.#heldChars > MAX_HELD_CHARS ? this.#release() : []
  }

  #stderrLine(text: string): readonly ExecEffect[] {
    return this.#mark === null ? [toClient({ type: 'system', subtype: 'stderr', message: text })] : []
  }

  /** The clients were sent everything up to here. */
  #found(): readonly ExecEffect[] {
    this.#mark = null
    this.#held = []
    if (this.#historyBytes === undefined) this.#isReplaying = false
    const repeated = [...this.#pending.values()].map(({ text }) => text)
    return [...(this.#init === undefined ? [] : [this.#init]), ...repeated].map((text) => ({
      do: 'toClient',
      text,
    }))
  }

  /** The line that was sent last is not in the replay. */
  #release(): readonly ExecEffect[] {
    this.#mark = null
    const [first, ...rest] = this.#held.map((text) => ({ text, line: parseRecord(text) }))
    this.#held = []
    // What the API dropped may end within a line.
    const whole = first === undefined || first.line === undefined ? rest : [first, ...rest]
    const { init } = this.#options.session
    const isRepeated = init !== null && !whole.some(({ line }) => line !== undefined && isInit(line))
    return [
      error(LOST),
      ...(isRepeated ? [{ do: 'toClient', text: init } as const] : []),
      ...whole.flatMap(({ text, line }) => this.#show(text, line)),
    ]
  }

  /** Keeps what clients that join need: the last `system/init`, and the requests that wait for an answer. */
  #observe(text: string, line: Json): void {
    switch (textAt(line, 'type')) {
      case 'system':
        if (isInit(line)) this.#init = text
        return
      case 'control_request':
        return this.#requested(text, line)
      case 'control_cancel_request':
        this.#pending.delete(textAt(line, 'request_id') ?? '')
        return
      case 'result':
        return this.#pending.clear()
      case 'user':
        for (const id of toolResultsOf(line))
          for (const [requestId, { toolUseId }] of this.#pending)
            if (toolUseId === id) this.#pending.delete(requestId)
        return
      default:
    }
  }

  #requested(text: string, line: Json): void {
    const requestId = textAt(line, 'request_id') ?? ''
    const request = recordAt(line, 'request')
    if (textAt(request, 'subtype') !== 'can_use_tool' || this.#options.session.isAnswered(requestId)) return
    const tool = { name: textAt(request, 'tool_name') ?? '', input: recordAt(request, 'input') ?? {} }
    const [oldest] = this.#pending.keys()
    if (this.#pending.size >= MAX_PENDING && oldest !== undefined) this.#pending.delete(oldest)
    this.#pending.set(requestId, { text, tool, toolUseId: textAt(request, 'tool_use_id') })
  }

  /** A line for the client, as the program wrote it. */
  #show(text: string, line: Json | undefined): readonly ExecEffect[] {
    if (line === undefined) return [toClient({ type: 'raw', data: text })]
    const { session } = this.#options
    const type = textAt(line, 'type') ?? ''
    const response = type === 'control_response' ? recordAt(line, 'response') : undefined
    if (textAt(response, 'request_id') === INITIALIZE_ID)
      return hasNoLogin(recordAt(response, 'response')) ? [{ do: 'refuse', message: NOT_SIGNED_IN }] : []
    // The whole message repeats its pieces.
    if (type === 'stream_event') return this.#isReplaying ? [] : [{ do: 'toClient', text }]
    const id = idOf(line)
    if (id !== undefined) session.sent(id, (this.#count += 1), isInit(line) ? text : undefined)
    if (type === 'result' && line['is_error'] === false) session.worked()
    return [{ do: 'toClient', text }, ...this.#consequences(type, line)]
  }

  #consequences(type: string, line: Json): readonly ExecEffect[] {
    const { session } = this.#options
    if (type === 'control_request') {
      const requestId = textAt(line, 'request_id') ?? ''
      if (textAt(recordAt(line, 'request'), 'subtype') !== 'can_use_tool')
        return this.#isReplaying ? [] : [write(unsupportedLine(requestId))]
      return session.isAnswered(requestId) ? [{ do: 'toClient', text: withdrawn(requestId) }] : []
    }
    const isRefused = type === 'assistant' && textAt(line, 'error') === 'authentication_failed'
    return isRefused && !session.hasWorked ? [{ do: 'refuse', message: NOT_SIGNED_IN }] : []
  }
}

/** What the program says about its login when it starts; other APIs than Anthropic's have credentials of their own. */
function hasNoLogin(initialized: Json | undefined): boolean {
  const account = recordAt(initialized, 'account')
  const isNone = (name: string): boolean => (textAt(account, name) ?? 'none') === 'none'
  return textAt(account, 'apiProvider') === 'firstParty' && isNone('tokenSource') && isNone('apiKeySource')
}

/** True for the line that describes the program at the start of each turn. */
function isInit(line: Json): boolean {
  return textAt(line, 'type') === 'system' && textAt(line, 'subtype') === 'init'
}

/** What identifies a line among those of the program; undefined for lines that occur again. */
function idOf(line: Json): string | undefined {
  const type = textAt(line, 'type') ?? ''
  if (type === 'stream_event') return undefined
  const id =
    textAt(line, 'uuid') ?? textAt(line, 'request_id') ?? textAt(recordAt(line, 'response'), 'request_id')
  return id === undefined ? undefined : `${type} ${id}`.slice(0, MAX_ID_CHARS)
}

/** Ids of the uses of tools whose results are in a line. */
function toolResultsOf(line: Json): readonly string[] {
  const content: unknown = recordAt(line, 'message')?.['content']
  if (!Array.isArray(content)) return []
  return content.flatMap((block: Json) => textAt(block, 'tool_use_id') ?? [])
}

function withdrawn(requestId: string): string {
  return encodeClaudeMessage({ type: 'control_cancel_request', request_id: requestId })
}

function write(line: string): ExecEffect {
  return { do: 'write', bytes: new TextEncoder().encode(`${line}\n`) }
}

function toClient(message: ClaudeServerMessage): ExecEffect {
  return { do: 'toClient', text: encodeClaudeMessage(message) }
}

function error(message: string): ExecEffect {
  return toClient({ type: 'system', subtype: 'error', message })
}
