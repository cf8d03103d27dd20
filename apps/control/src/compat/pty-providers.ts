import { SandwireError } from '@sandwire/protocol'
import type { CommandPolicy, FilledTemplate } from '../commands/command-policy.ts'
import type { SandboxCall } from '../sandbox/call.ts'

/** The default provider: the sandbox's own shell, unless a template has this id. */
export const SHELL = 'shell'
const MAX_NAME_CHARS = 64

/** Providers that compat clients can start. Excludes templates with required parameters, which these clients cannot send. */
export function listProviders(commands: CommandPolicy): readonly string[] {
  const templates = commands.templates
    .filter(({ params }) => params.every(({ fallback }) => fallback !== undefined))
    .map(({ id }) => id)
  const hasShell = commands.allowsFree && !templates.includes(SHELL)
  return hasShell ? [SHELL, ...templates] : templates
}

/** Worded as compat clients expect. Echoes only the printable part of the name. */
function unknownProvider(name: string, commands: CommandPolicy): SandwireError {
  const shown = name.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_NAME_CHARS)
  const known = listProviders(commands).map((each) => `'${each}'`)
  return new SandwireError('bad_template', `Unknown provider: ${shown}. Available: [${known.join(', ')}]`)
}

/** The command of a provider; undefined means the shell. Throws `bad_template` for an unknown one. */
export function fillProvider(name: string, commands: CommandPolicy): FilledTemplate | undefined {
  if (!listProviders(commands).includes(name)) throw unknownProvider(name, commands)
  const isTemplate = commands.templates.some(({ id }) => id === name)
  return isTemplate ? commands.fill(name, []) : undefined
}

/** Why the caller may not start this provider, if so. Every caller who may work in the sandbox may start templates. */
export function findStartRefusal(
  filled: FilledTemplate | undefined,
  call: Pick<SandboxCall, 'scopes'>,
  commands: CommandPolicy,
): SandwireError | undefined {
  return filled === undefined ? findRefusal(undefined, call, commands) : undefined
}

/** Why the caller may not start this command, if so; undefined is the shell. */
export function findRefusal(
  cmd: string | undefined,
  call: Pick<SandboxCall, 'scopes'>,
  commands: CommandPolicy,
): SandwireError | undefined {
  try {
    commands.checkFree(call, cmd)
    return undefined
  } catch (caught) {
    return SandwireError.from(caught)
  }
}
