import type { WebSocketMessage } from './websocket-frames.ts'

/** A message of the exec API, decoded. */
export type ExecFrame =
  /** The first message about a session, after a create and after every attach. */
  | { readonly kind: 'info'; readonly id: string; readonly createdSeconds: number }
  /** How much earlier output follows. `isCut`: the process had ended, and only the first 64 KiB of its output are left. */
  | { readonly kind: 'history'; readonly bytes: number; readonly isCut: boolean }
  | { readonly kind: 'output'; readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  /** `isLast`: no output follows. The text form may precede the last output. */
  | { readonly kind: 'exit'; readonly code: number; readonly isLast: boolean }
  | { readonly kind: 'error' }
  /** Ports, debug messages and what later versions may send. */
  | { readonly kind: 'other' }

const STDIN = 0
const STDOUT = 1
const STDERR = 2
const EXIT = 3
const STDIN_END = 4
/** Output of an ended process that the API keeps. */
const FAST_PATH_BYTES = 65_536

const OTHER: ExecFrame = { kind: 'other' }

function field(value: object, name: string): unknown {
  return Reflect.get(value, name)
}

function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    // Not a message of the API.
    return {}
  }
}

/** Earlier versions sent the id as a number. */
function decodeInfo(message: object): ExecFrame {
  const id = field(message, 'session_id')
  const created = field(message, 'created')
  const text = typeof id === 'number' ? String(id) : id
  // It becomes part of a path.
  if (typeof text !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(text)) return { kind: 'error' }
  return { kind: 'info', id: text, createdSeconds: typeof created === 'number' ? created : 0 }
}

function decodeDebug(message: object): ExecFrame {
  const text = field(message, 'msg')
  const [, path, length] =
    typeof text === 'string' ? (/^(normal|fast)_path\b.*\bhistory_len=(\d{1,9})$/.exec(text) ?? []) : []
  if (length === undefined) return OTHER
  const bytes = Number(length)
  return { kind: 'history', bytes, isCut: path === 'fast' && bytes >= FAST_PATH_BYTES }
}

function decodeText(text: string): ExecFrame {
  const message = parseObject(text)
  const type = field(message, 'type')
  if (type === 'session_info') return decodeInfo(message)
  if (type === 'exit') {
    const code = field(message, 'exit_code')
    return { kind: 'exit', code: typeof code === 'number' ? code : 255, isLast: false }
  }
  if (type === 'error') return { kind: 'error' }
  // Debug messages may have no type.
  return type === 'debug' || type === undefined ? decodeDebug(message) : OTHER
}

/** One byte; four in a dialect that some clients expect. */
function exitCodeOf(payload: Uint8Array): number {
  return payload.reduce((code, byte) => code * 256 + byte, 0)
}

export function decodeExecFrame(message: WebSocketMessage, isTty: boolean): ExecFrame {
  if (message.kind === 'text') return decodeText(message.text)
  const { bytes } = message
  if (isTty) return { kind: 'output', stream: 'stdout', bytes }
  const payload = bytes.subarray(1)
  switch (bytes[0]) {
    case STDOUT:
      return { kind: 'output', stream: 'stdout', bytes: payload }
    case STDERR:
      return { kind: 'output', stream: 'stderr', bytes: payload }
    case EXIT:
      return { kind: 'exit', code: exitCodeOf(payload.subarray(0, 4)), isLast: true }
    default:
      return OTHER
  }
}

export function encodeInput(bytes: Uint8Array, isTty: boolean): Uint8Array {
  if (isTty) return bytes
  const frame = new Uint8Array(bytes.length + 1)
  frame[0] = STDIN
  frame.set(bytes, 1)
  return frame
}

/** The end of the input of a process without a terminal. */
export const INPUT_END = new Uint8Array([STDIN_END])

export function encodeResize(cols: number, rows: number): string {
  return JSON.stringify({ type: 'resize', cols, rows })
}

export function encodeSignal(signal: string): string {
  return JSON.stringify({ type: 'signal', signal })
}

/** A command to start, from a server-owned template. */
export interface ExecCommand {
  readonly argv: readonly [string, ...string[]]
  /** Replaces the default environment, so it must be complete. */
  readonly env: Readonly<Record<string, string>>
  readonly dir: string
  readonly isTty: boolean
  readonly cols: number
  readonly rows: number
  /** How long the process runs without a client, at least 1: for terminals, the API takes 0 for ever. */
  readonly keepSeconds: number
}

/** Query of the WebSocket that starts a command. */
export function formatExecQuery({ argv, env, dir, isTty, cols, rows, keepSeconds }: ExecCommand): string {
  const query = new URLSearchParams(argv.map((argument) => ['cmd', argument]))
  query.append('path', argv[0])
  query.append('stdin', 'true')
  if (isTty) {
    query.append('tty', 'true')
    query.append('cols', String(cols))
    query.append('rows', String(rows))
  }
  for (const [name, value] of Object.entries(env)) query.append('env', `${name}=${value}`)
  query.append('dir', dir)
  query.append('max_run_after_disconnect', `${Math.max(1, keepSeconds)}s`)
  return query.toString()
}
