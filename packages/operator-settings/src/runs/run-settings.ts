import { schema } from '@sandwire/protocol'
import { type CredentialSettings } from '../credentials/credential-settings.ts'
import { anything, type Field, validateRecord } from '../validate-record.ts'

/** Agents that need no settings, and the formats of model APIs that they can use. */
export const BUILT_IN_AGENTS = {
  claude: ['anthropic'],
  opencode: ['anthropic', 'openai'],
} as const satisfies Readonly<Record<string, readonly ('anthropic' | 'openai')[]>>

/** The id of Anthropic's API, which needs no settings. */
export const ANTHROPIC_PROVIDER = 'anthropic'

/** An agent that the operator declares. It speaks the Agent Client Protocol. */
export interface DeclaredAgent {
  readonly name: string
  readonly title: string | undefined
  /** Path in the sandbox, or a name on its PATH. */
  readonly program: string
  readonly args: readonly string[]
  /** `{gateway}`, `{token}` and `{model}` are replaced. */
  readonly env: Readonly<Record<string, string>>
}

/** The model API of an agent. */
export interface AgentModel {
  /** A model provider of the credential settings. */
  readonly provider: string
  /** Model of runs that name none. */
  readonly model: string
}

const MAX_SECONDS = 7 * 24 * 60 * 60
const MAX_AGENTS = 32
const AGENT_NAME = /^[a-z][a-z0-9-]{0,31}$/

const integer = (min: number, max: number, fallback: number) =>
  ({ schema: schema.integer(min, max), expected: `a whole number from ${min} to ${max}`, fallback }) as const
const usd: schema.Schema<number> = {
  decode: (value) => (typeof value === 'number' && value >= 0.01 && value <= 100_000 ? value : undefined),
  describe: 'amount',
}
const model = {
  schema: schema.text(128, /^[A-Za-z0-9._:/@[\]-]+$/),
  expected: 'the name of a model',
} as const
const text = (maxChars: number, expected: string): Field<string> => ({
  schema: schema.text(maxChars, /^[^\0]+$/),
  expected,
})

/** Limits of runs, and their defaults. */
const RUNS = {
  /** Runs of an account that work at the same time; further ones wait. */
  concurrent: integer(1, 10_000, 8),
  /** Runs of an account that wait. */
  queued: integer(0, 100_000, 200),
  /** Runs that an account may create in a minute; 0: any number. */
  perMinute: integer(0, 100_000, 120),
  /** Ended runs of an account that are kept; the oldest are deleted. */
  kept: integer(1, 100_000, 1_000),
  /** Days for which an ended run is kept. */
  keepDays: integer(1, 3_650, 30),
  /** Model of runs that name none; absent: the agent's own default. */
  model: { ...model, fallback: undefined },
  /** Models that a run may use, each exact or a prefix followed by `*`; empty: all. */
  models: { schema: schema.list(schema.text(128, /^.+$/), 64), expected: 'a list of models', fallback: [] },
  /** Longest time that an agent works; also the default. */
  wallClockSeconds: integer(1, MAX_SECONDS, 3_600),
  /** Longest time without output of an agent; also the default. */
  idleSeconds: integer(1, 24 * 60 * 60, 600),
  /** Until a pending approval is denied. */
  approvalSeconds: integer(1, MAX_SECONDS, 600),
  /** Most that a run may cost, in US dollars; also the default. */
  budgetUsd: { schema: usd, expected: 'US dollars from 0.01 to 100000', fallback: 10 },
  /** Requests to the model that a run may make; 0: any number. */
  turns: integer(0, 100_000, 0),
  agents: {
    schema: schema.list(anything, MAX_AGENTS),
    expected: `a list of at most ${MAX_AGENTS}`,
    fallback: [],
  },
  /** Model providers by the name of the agent; others use Anthropic's API. */
  providers: { schema: anything, expected: 'an object with an entry for each agent', fallback: {} },
  /** Account that owns the runs of Workers that bind `CLAUDE_SANDBOX`; absent: they cannot start any. */
  bindingAccount: { ...text(256, 'the id of an account'), fallback: undefined },
} as const

const AGENT = {
  name: { schema: schema.text(32, AGENT_NAME), expected: 'a name in lower case' },
  title: { ...text(64, 'a text of at most 64 characters'), fallback: undefined },
  program: text(4_096, 'the path of a program'),
  args: {
    schema: schema.list(schema.text(4_096), 64),
    expected: 'a list of at most 64 texts',
    fallback: [],
  },
  env: {
    schema: schema.dictionary(64, /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, schema.text(4_096)),
    expected: 'an object with environment variables',
    fallback: {},
  },
} as const

const AGENT_MODEL = {
  provider: { schema: schema.text(32, /^[a-z0-9-]+$/), expected: 'the id of a model provider' },
  model,
} as const

/** Settings of runs of coding agents. */
export type RunSettings = {
  readonly [K in Exclude<keyof typeof RUNS, 'agents' | 'providers'>]: (typeof RUNS)[K] extends Field<infer T>
    ? T
    : never
} & {
  readonly agents: readonly DeclaredAgent[]
  readonly providers: Readonly<Record<string, AgentModel>>
}

function validateAgents(raw: readonly unknown[], problems: string[]): readonly DeclaredAgent[] {
  const agents = raw.flatMap((each, at) => {
    return validateRecord(`runs.agents[${at}]`, each, AGENT, problems) ?? []
  })
  const names = [...Object.keys(BUILT_IN_AGENTS), ...agents.map(({ name }) => name)]
  for (const name of new Set(names.filter((each, at) => names.indexOf(each) !== at)))
    problems.push(`runs.agents: "${name}" is defined twice`)
  return agents
}

function validateProviders(
  raw: unknown,
  agents: readonly DeclaredAgent[],
  credentials: CredentialSettings,
  problems: string[],
): Readonly<Record<string, AgentModel>> {
  const where = 'runs.providers'
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    problems.push(`${where}: expected an object`)
    return {}
  }
  const entries = Object.entries(raw).flatMap(
    ([agent, value]): readonly (readonly [string, AgentModel])[] => {
      const entry = validateRecord(`${where}.${agent}`, value, AGENT_MODEL, problems)
      if (entry === undefined) return []
      const isBuiltIn = Object.hasOwn(BUILT_IN_AGENTS, agent)
      if (!isBuiltIn && !agents.some(({ name }) => name === agent))
        problems.push(`${where}: "${agent}" is not an agent`)
      const provider = credentials.providers.find(({ id }) => id === entry.provider)
      if (provider === undefined && entry.provider !== ANTHROPIC_PROVIDER)
        problems.push(`${where}.${agent}: "${entry.provider}" is not in "credentials.providers"`)
      const formats: readonly string[] = isBuiltIn
        ? BUILT_IN_AGENTS[agent as keyof typeof BUILT_IN_AGENTS]
        : ['anthropic', 'openai']
      if (provider !== undefined && !formats.includes(provider.api))
        problems.push(`${where}.${agent}: the agent cannot use a provider with "api": "${provider.api}"`)
      return [[agent, entry]]
    },
  )
  return Object.fromEntries(entries)
}

/** Decodes the operator's `runs` and adds every problem to `problems`; then the defaults are returned. */
export function validateRunSettings(
  raw: unknown,
  credentials: CredentialSettings,
  problems: string[],
): RunSettings {
  const decoded = validateRecord('runs', raw, RUNS, problems) ?? validateRecord('runs', {}, RUNS, [])
  if (decoded === undefined) throw new Error('The defaults of runs are not valid')
  const agents = validateAgents(decoded.agents, problems)
  return {
    ...decoded,
    agents,
    providers: validateProviders(decoded.providers, agents, credentials, problems),
  }
}
