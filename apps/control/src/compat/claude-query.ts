import { sandboxIdOf, sandboxIdOfRun } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { isSessionToken } from '../auth/session-token.ts'
import type { RunLimits, StreamOptions } from '../run/record.ts'
import { parseSandboxRef, type SandboxRef } from '../sandbox/sandbox-id.ts'

export const CLAUDE_STREAM_PATH = '/ws/claude-stream'

/** The decoded query of `/ws/claude-stream`. */
export interface ClaudeQuery {
  readonly sandbox: SandboxRef | undefined
  /** `resume`: continues a conversation. `new`: always a new one. `either`: joins the program if it is at work. */
  readonly select: 'resume' | 'new' | 'either'
  /** The id of the session or one of its tokens. */
  readonly session?: string
  /** A name that the client made up. */
  readonly alias?: string
  readonly model?: string
  readonly limits: Partial<Pick<RunLimits, 'turns' | 'budgetUsd'>>
  readonly options: StreamOptions
}

/** Other spellings that clients use. */
const ALSO: ReadonlyMap<string, string> = new Map([
  ['allowedTools', 'allowed_tools'],
  ['disallowedTools', 'disallowed_tools'],
])
const NAMES = [
  'session_id',
  'resume',
  'force_new',
  'sandbox',
  'mode',
  'model',
  'allowed_tools',
  'disallowed_tools',
  'max_thinking_tokens',
  'max_turns',
  'max_budget_usd',
  'file',
  'files',
  'test_events',
] as const
type Name = (typeof NAMES)[number]

const MAX_VALUE_CHARS = 4_096
const MAX_TOOLS = 64
const ALIAS = /^[A-Za-z0-9_-]{1,128}$/
const MODEL = /^[A-Za-z0-9._:/@[\]-]{1,128}$/
/** Models as Claude Code itself names them. */
const MODEL_ALIASES: readonly string[] = ['sonnet', 'opus', 'haiku', 'opusplan', 'default']

function badParameter(name: string, problem: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${problem}`)
}

function readValues(query: URLSearchParams): ReadonlyMap<Name, string> {
  const values = new Map<Name, string>()
  for (const [given, value] of query) {
    const name = ALSO.get(given) ?? given
    const known = NAMES.find((candidate) => candidate === name)
    if (known === undefined) throw badParameter(name.replace(/[^\x20-\x7e]/g, '').slice(0, 40), 'unknown')
    if (values.has(known)) throw badParameter(known, 'given twice')
    if (value.length > MAX_VALUE_CHARS) throw badParameter(known, 'too long')
    // Clients send an empty value for a parameter they do not have.
    if (value !== '') values.set(known, value)
  }
  return values
}

function readFlag(values: ReadonlyMap<Name, string>, name: 'resume' | 'force_new'): boolean {
  const value = values.get(name) ?? '0'
  if (!['0', '1', 'false', 'true'].includes(value)) throw badParameter(name, 'expected 1 or 0')
  return value === '1' || value === 'true'
}

function readNumber(values: ReadonlyMap<Name, string>, name: Name, format: RegExp): number | undefined {
  const value = values.get(name)
  if (value === undefined) return undefined
  if (!format.test(value)) throw badParameter(name, 'expected a number')
  return Number(value)
}

/** Rules, separated by commas outside parentheses: `Bash(git add, git commit),Read`. */
function readRules(values: ReadonlyMap<Name, string>, name: Name): readonly string[] | undefined {
  const value = values.get(name)
  if (value === undefined) return undefined
  const rules = value.split(/,(?![^(]*\))/).map((rule) => rule.trim())
  const isValid = rules.every((rule) => rule !== '' && rule.length <= 1024 && !/\p{Cc}/u.test(rule))
  if (!isValid || rules.length > MAX_TOOLS) throw badParameter(name, 'expected names of tools')
  return rules
}

function readSession(
  id: string | undefined,
  select: ClaudeQuery['select'],
): Pick<ClaudeQuery, 'session' | 'alias'> {
  if (id === undefined) return {}
  // That of a run, or of a session that the provider runs itself.
  const isId = sandboxIdOfRun(id) !== undefined || sandboxIdOf(id) !== undefined
  // A new session gets a new id, so the id or token of another session is ignored.
  if (isSessionToken(id) || isId) return select === 'new' ? {} : { session: id }
  if (ALIAS.test(id)) return { alias: id }
  // A malformed name is reported like an unknown session; one that is not resumed gets a new id.
  return select === 'resume' ? { session: id } : {}
}

function readMode(mode: string | undefined): Pick<StreamOptions, 'permissionMode'> {
  switch (mode ?? 'ask') {
    case 'ask':
      return {}
    case 'act':
      return { permissionMode: 'acceptEdits' }
    case 'plan':
      return { permissionMode: 'plan' }
    default:
      throw badParameter('mode', 'expected ask, act or plan')
  }
}

function readModel(
  model: string | undefined,
): Pick<ClaudeQuery, 'model'> & Pick<StreamOptions, 'modelAlias'> {
  if (model === undefined) return {}
  if (MODEL_ALIASES.includes(model)) return { modelAlias: model }
  if (!MODEL.test(model)) throw badParameter('model', 'expected its name')
  return { model }
}

/** Decodes the query of `/ws/claude-stream`; throws `bad_request`. Ignores `test_events`. */
export function parseClaudeQuery(query: URLSearchParams): ClaudeQuery {
  const values = readValues(query)
  if (values.has('file') || values.has('files'))
    throw badParameter('file', 'files of the model API are not supported; name files in "context_files"')
  const isResume = readFlag(values, 'resume')
  const select = readFlag(values, 'force_new') ? 'new' : isResume ? 'resume' : 'either'
  const sandbox = values.get('sandbox')
  const turns = readNumber(values, 'max_turns', /^[1-9][0-9]{0,4}$/)
  const budgetUsd = readNumber(values, 'max_budget_usd', /^[0-9]{1,6}(?:\.[0-9]{1,6})?$/)
  const maxThinkingTokens = readNumber(values, 'max_thinking_tokens', /^[0-9]{1,6}$/)
  const allowedTools = readRules(values, 'allowed_tools')
  const disallowedTools = readRules(values, 'disallowed_tools')
  const { model, modelAlias } = readModel(values.get('model'))
  return {
    sandbox: sandbox === undefined ? undefined : parseSandboxRef(sandbox),
    select,
    ...readSession(values.get('session_id'), select),
    ...(model === undefined ? {} : { model }),
    limits: {
      ...(turns === undefined ? {} : { turns }),
      ...(budgetUsd === undefined ? {} : { budgetUsd }),
    },
    options: {
      ...readMode(values.get('mode')),
      ...(modelAlias === undefined ? {} : { modelAlias }),
      ...(maxThinkingTokens === undefined ? {} : { maxThinkingTokens }),
      ...(allowedTools === undefined ? {} : { allowedTools }),
      ...(disallowedTools === undefined ? {} : { disallowedTools }),
    },
  }
}
