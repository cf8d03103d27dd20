import { shape } from '@sandwire/protocol'
import { commandName } from './command-name.ts'
import { anything, validateRecord } from './judge-record.ts'
import { type CommandTemplate, validateTemplate } from './judge-template.ts'

/** What may be run, as the operator says it. */
export interface CommandSettings {
  /** Who may run commands of their own: whose credential is good for `exec`, or nobody, and then templates alone run. */
  readonly free: 'exec-scope' | 'nobody'
  /** Names of commands that are refused. A guard rail and no boundary: whatever runs can run others. */
  readonly blocked: readonly string[]
  readonly templates: readonly CommandTemplate[]
}

const MAX_TEMPLATES = 64
const MAX_BLOCKED = 256

export const NO_COMMAND_SETTINGS: CommandSettings = { free: 'exec-scope', blocked: [], templates: [] }

const SETTINGS = {
  free: {
    shape: shape.oneOf(['exec-scope', 'nobody']),
    expected: 'exec-scope or nobody',
    fallback: 'exec-scope' as const,
  },
  blocked: {
    shape: shape.list(shape.text(255, /^[^/\0]+$/), MAX_BLOCKED),
    expected: `a list of at most ${MAX_BLOCKED} names of commands, without folders`,
    fallback: [],
  },
  templates: {
    shape: shape.list(anything, MAX_TEMPLATES),
    expected: `a list of at most ${MAX_TEMPLATES}`,
    fallback: [],
  },
} as const

/** Decodes the operator's `commands`, and adds every reason why they cannot be used to `problems`. */
export function validateCommandSettings(raw: unknown, problems: string[]): CommandSettings {
  const judged = validateRecord('commands', raw, SETTINGS, problems)
  if (judged === undefined) return NO_COMMAND_SETTINGS
  const { free, blocked } = judged
  const templates = judged.templates.flatMap(
    (each, at) => validateTemplate(`commands.templates[${at}]`, each, problems) ?? [],
  )
  for (const [at, { id, argv }] of templates.entries()) {
    if (templates.findIndex((other) => other.id === id) !== at)
      problems.push(`commands.templates: "${id}" is there twice`)
    if (blocked.includes(commandName(argv[0] ?? '')))
      problems.push(`commands.templates: "${id}" runs a command that "blocked" lists`)
  }
  return { free, blocked, templates }
}
