import {
  type CredentialSettings,
  type Field,
  NO_CREDENTIAL_SETTINGS,
  validateCeilingSettings,
  validateCommandSettings,
  validateCredentialSettings,
  validateRunSettings,
  validateRecord,
  findEmbedOriginProblem,
  MAX_EMBED_ORIGINS,
} from '@sandwire/operator-settings'
import { limits, schema } from '@sandwire/protocol'
import type { ConnectionSettings } from '../control/connection-limits.ts'
import { type IssuerInput, validateIssuerInput } from './identity.ts'

/** Far more than any installation needs. */
const MAX_ISSUERS = 16

/** Content of a settings file. */
export interface SettingsFile {
  readonly issuers: readonly IssuerInput[]
  /** Settings for control, unchanged. */
  readonly passed: Readonly<Record<string, unknown>>
  readonly connections: ConnectionSettings
  /** Settings of the credential gateway, which are passed to control too. */
  readonly credentials: CredentialSettings
}

function whole(min: number, max: number): Field<number> {
  return { schema: schema.integer(min, max), expected: `a whole number from ${min} to ${max}` }
}

const optional = <T>(field: Field<T>) => ({ ...field, fallback: undefined })
const perMinute = optional(whole(0, 1_000_000))
const connectionCount = optional(whole(1, 1_000_000))
const CONNECTIONS = { total: connectionCount, perAddress: connectionCount }
const LIMITS = {
  attachesPerMinutePerAddress: perMinute,
  attachesPerMinutePerUser: perMinute,
  workspaceCostPerMinutePerUser: perMinute,
  strangersPerMinutePerAddress: perMinute,
  sessionsPerSandbox: optional(whole(1, 10_000)),
  outputBytesPerSecond: optional(whole(0, 2 ** 40)),
}

const timeout = optional(whole(0, limits.MAX_SESSION_SECONDS))
const SESSIONS = {
  lifetimeSeconds: timeout,
  idleSeconds: timeout,
  ptyReattachSeconds: optional(whole(0, limits.MAX_KEEP_SECONDS)),
  ptyHeartbeatSeconds: optional(whole(5, 3600)),
}

const amount: schema.Schema<number> = {
  decode: (value) => (typeof value === 'number' && value >= 0.01 && value <= 100_000 ? value : undefined),
  describe: 'amount',
}

const CONVERSATIONS = {
  perAccount: optional(whole(1, 100_000)),
  keepDays: optional(whole(1, 3_650)),
  budgetUsd: optional({ schema: amount, expected: 'US dollars from 0.01 to 100000' }),
  agentHours: optional(whole(1, 7 * 24)),
}

function validateOrigins(value: unknown, problems: string[]): void {
  if (!Array.isArray(value) || value.length > MAX_EMBED_ORIGINS) {
    problems.push(`"conversationOrigins" must be a list of at most ${MAX_EMBED_ORIGINS} origins`)
    return
  }
  for (const each of value as readonly unknown[]) {
    const problem = typeof each === 'string' ? findEmbedOriginProblem(each) : 'not a text'
    if (problem !== undefined) problems.push(`"conversationOrigins" has ${JSON.stringify(each)}: ${problem}`)
  }
}

const RETENTION = {
  automaticVersions: optional(whole(1, 1_000)),
  checkpointDays: optional({
    schema: schema.nullable(schema.integer(1, 3_650)),
    expected: 'a whole number from 1 to 3650, or null',
  }),
}

/** `all`: the other settings of the file. */
type Validate = (value: unknown, problems: string[], all: Readonly<Record<string, unknown>>) => void

/** Validates a setting with a single value. */
function one<T>(key: string, { schema: { decode }, expected }: Field<T>): Validate {
  return (value, problems) => {
    if (decode(value) === undefined) problems.push(`"${key}" must be ${expected}`)
  }
}

/** Settings of control that an operator may set, and their validation, equal to control's. */
const PASSED: Readonly<Record<string, Validate>> = {
  ceilings: (value, problems) => void validateCeilingSettings(value, problems),
  commands: validateCommandSettings,
  conversationOrigins: validateOrigins,
  conversations: (value, problems) => void validateRecord('conversations', value, CONVERSATIONS, problems),
  credentials: (value, problems) => void validateCredentialSettings(value, problems),
  limits: (value, problems) => void validateRecord('limits', value, LIMITS, problems),
  retention: (value, problems) => void validateRecord('retention', value, RETENTION, problems),
  runs: (value, problems, all) =>
    void validateRunSettings(value, validateCredentialSettings(all['credentials'] ?? {}, []), problems),
  sessions: (value, problems) => void validateRecord('sessions', value, SESSIONS, problems),
  sessionTokenMinutes: one('sessionTokenMinutes', whole(15, 60)),
  tokenInUrl: one('tokenInUrl', { schema: schema.bool, expected: 'true or false' }),
}

const EMPTY_SETTINGS: SettingsFile = {
  issuers: [],
  passed: {},
  connections: {},
  credentials: NO_CREDENTIAL_SETTINGS,
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined
  } catch {
    return undefined
  }
}

function validateIssuers(value: unknown, problems: string[]): readonly IssuerInput[] {
  if (value === undefined) return []
  if (Array.isArray(value) && value.length <= MAX_ISSUERS)
    return value.flatMap((each, at) => validateIssuerInput(`issuers[${at}]`, each, problems) ?? [])
  problems.push(`"issuers" must be a list of at most ${MAX_ISSUERS}`)
  return []
}

/** Reads and validates the settings file, if it exists. */
export function validateSettingsFile(
  file: string,
  readFile: (file: string) => string | undefined,
  problems: string[],
): SettingsFile {
  let text: string | undefined
  try {
    text = readFile(file)
  } catch (error) {
    problems.push(`"${file}" cannot be used: ${error instanceof Error ? error.message : 'it cannot be read'}`)
    return EMPTY_SETTINGS
  }
  if (text === undefined) return EMPTY_SETTINGS
  const all = parse(text)
  if (all === undefined) {
    problems.push(`"${file}" cannot be used: it is not a JSON object`)
    return EMPTY_SETTINGS
  }
  const { issuers, connections = {}, ...passed } = all
  const fileProblems: string[] = []
  for (const [key, value] of Object.entries(passed)) {
    const validate = Object.hasOwn(PASSED, key) ? PASSED[key] : undefined
    if (validate !== undefined) validate(value, fileProblems, passed)
    else
      fileProblems.push(
        `"${key}" is not a setting; known settings are issuers, connections, ${Object.keys(PASSED).join(', ')}`,
      )
  }
  const issuerInputs = validateIssuers(issuers, fileProblems)
  const counts = validateRecord('connections', connections, CONNECTIONS, fileProblems) ?? {}
  problems.push(...fileProblems.map((problem) => `"${file}": ${problem}`))
  // Problems were reported above.
  const credentials = validateCredentialSettings(passed['credentials'] ?? {}, [])
  return { issuers: issuerInputs, passed, connections: counts, credentials }
}
