import { limits, SandwireError } from '@sandwire/protocol'
import type { CreateParameters } from '../sessions/session-command.ts'

/** Body of `POST /sessions`. */
export interface CreateBody {
  readonly createId: string
  readonly create: CreateParameters
  readonly env: Readonly<Record<string, string>>
  readonly cols: number
  readonly rows: number
}

const FIELDS = new Set([
  'createId',
  'cmd',
  'args',
  'mode',
  'cwd',
  'env',
  'cols',
  'rows',
  'keep',
  'overflow',
  'pin',
])

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use field "${name}": ${why}`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0')
}

function readWhole(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  range: { min: number; max: number; fallback: number },
): number {
  const value = fields[name]
  if (value === undefined) return range.fallback
  if (typeof value !== 'number' || !Number.isInteger(value) || value < range.min || value > range.max) {
    throw bad(name, `expected a whole number from ${range.min} to ${range.max}`)
  }
  return value
}

function readChoice<const T extends string>(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  options: readonly T[],
  fallback: T,
): T {
  const value = fields[name]
  if (value === undefined) return fallback
  const found = options.find((option) => option === value)
  if (found === undefined) throw bad(name, `expected ${options.join(' or ')}`)
  return found
}

function readArgv(fields: Readonly<Record<string, unknown>>): string[] {
  const { cmd, args } = fields
  if (cmd === undefined) {
    if (args !== undefined) throw bad('args', 'there is no cmd')
    return []
  }
  if (!isText(cmd) || cmd === '') throw bad('cmd', 'expected a text')
  if (args === undefined) return [cmd]
  if (!Array.isArray(args) || args.length > 1023 || !args.every(isText))
    throw bad('args', 'expected a list of texts')
  return [cmd, ...args]
}

function readEnv(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw bad('env', 'expected an object')
  const env: Record<string, string> = {}
  const entries: [string, unknown][] = Object.entries(value)
  if (entries.length > limits.MAX_ENV_ENTRIES) throw bad('env', 'too many entries')
  for (const [name, text] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name) || !isText(text))
      throw bad('env', 'expected texts under plain names')
    env[name] = text
  }
  return env
}

/** Decodes the body; throws `bad_request`. */
export function parseCreateBody(body: unknown): CreateBody {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SandwireError('bad_request', 'Cannot read the body: expected a JSON object')
  const fields = body as Readonly<Record<string, unknown>>
  for (const name of Object.keys(fields))
    if (!FIELDS.has(name)) throw bad(name.replace(/\p{C}/gu, '').slice(0, 40), 'unknown')
  const { createId, cwd, pin = false } = fields
  if (typeof createId !== 'string' || !/^[0-9a-f]{32}$/.test(createId))
    throw bad('createId', 'expected 32 lower-case hex digits')
  if (cwd !== undefined && !isText(cwd)) throw bad('cwd', 'expected a text')
  if (typeof pin !== 'boolean') throw bad('pin', 'expected true or false')
  const mode = readChoice(fields, 'mode', ['pipe', 'pty'], 'pipe')
  const cells = { min: 1, max: limits.MAX_CELLS }
  return {
    createId,
    env: readEnv(fields['env']),
    cols: readWhole(fields, 'cols', { ...cells, fallback: 80 }),
    rows: readWhole(fields, 'rows', { ...cells, fallback: 24 }),
    create: {
      argv: readArgv(fields),
      mode,
      cwd,
      keepSeconds: readWhole(fields, 'keep', {
        min: 1,
        max: limits.MAX_KEEP_SECONDS,
        fallback: limits.KEEP_SECONDS,
      }),
      overflow: readChoice(fields, 'overflow', ['block', 'trim'], mode === 'pty' ? 'trim' : 'block'),
      isPinned: pin,
    },
  }
}
