import { schema } from '@sandwire/protocol'
import { anything, validateRecord } from '../validate-record.ts'
import { commandName, type CommandTemplate, validateTemplate } from './command-template.ts'

/** Which commands may run, as configured by the operator. */
export interface CommandSettings {
  /** Who may run commands other than templates: accounts with the scope `sandbox:exec`, or nobody. */
  readonly free: 'exec-scope' | 'nobody'
  /** Names of refused commands. Not a security boundary: any allowed program can start others. */
  readonly blocked: readonly string[]
  readonly templates: readonly CommandTemplate[]
}

const MAX_TEMPLATES = 64
const MAX_BLOCKED = 256

export const NO_COMMAND_SETTINGS: CommandSettings = { free: 'exec-scope', blocked: [], templates: [] }

const SETTINGS = {
  free: {
    schema: schema.oneOf(['exec-scope', 'nobody']),
    expected: 'exec-scope or nobody',
    fallback: 'exec-scope' as const,
  },
  blocked: {
    schema: schema.list(schema.text(255, /^[^/\0]+$/), MAX_BLOCKED),
    expected: `a list of at most ${MAX_BLOCKED} names of commands, without folders`,
    fallback: [],
  },
  templates: {
    schema: schema.list(anything, MAX_TEMPLATES),
    expected: `a list of at most ${MAX_TEMPLATES}`,
    fallback: [],
  },
} as const

/** Decodes the operator's `commands` and adds every problem to `problems`. */
export function validateCommandSettings(raw: unknown, problems: string[]): CommandSettings {
  const decoded = validateRecord('commands', raw, SETTINGS, problems)
  if (decoded === undefined) return NO_COMMAND_SETTINGS
  const { free, blocked } = decoded
  const templates = decoded.templates.flatMap(
    (each, at) => validateTemplate(`commands.templates[${at}]`, each, problems) ?? [],
  )
  for (const [at, { id, argv }] of templates.entries()) {
    if (templates.findIndex((other) => other.id === id) !== at)
      problems.push(`commands.templates: "${id}" is defined twice`)
    if (blocked.includes(commandName(argv[0] ?? '')))
      problems.push(`commands.templates: "${id}" runs a command that "blocked" lists`)
  }
  return { free, blocked, templates }
}
