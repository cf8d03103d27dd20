import { SandwireError } from '@sandwire/protocol'
import type { SandboxCall } from '../sandbox/call.ts'
import type { CommandPolicy } from './command-policy.ts'
import type { FilledTemplate } from './fill-template.ts'

/** What is run where none is named, and what it means unless a template has this id: the sandbox's own shell. */
export const SHELL = 'shell'
const MAX_NAME_CHARS = 64

/** What terminals of the contract can run. A template that asks for something cannot: its clients have no way to say it. */
export function listProviders(commands: CommandPolicy): readonly string[] {
  const templates = commands.templates
    .filter(({ params }) => params.every(({ fallback }) => fallback !== undefined))
    .map(({ id }) => id)
  const hasShell = commands.allowsFree && !templates.includes(SHELL)
  return hasShell ? [SHELL, ...templates] : templates
}

/** The error of contract clients, in their words; a name of theirs is said back only as far as it is printable. */
function unknownProvider(name: string, commands: CommandPolicy): SandwireError {
  const shown = name.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_NAME_CHARS)
  const known = listProviders(commands).map((each) => `'${each}'`)
  return new SandwireError('bad_template', `Unknown provider: ${shown}. Available: [${known.join(', ')}]`)
}

/** The command of a provider; undefined is the shell. Throws for one that there is not. */
export function fillProvider(name: string, commands: CommandPolicy): FilledTemplate | undefined {
  if (!listProviders(commands).includes(name)) throw unknownProvider(name, commands)
  const isTemplate = commands.templates.some(({ id }) => id === name)
  return isTemplate ? commands.fill(name, []) : undefined
}

/** Why a caller may not start this, if it may not. Templates are for everybody who may work. */
export function providerRefusal(
  filled: FilledTemplate | undefined,
  call: Pick<SandboxCall, 'scopes'>,
  commands: CommandPolicy,
): SandwireError | undefined {
  if (filled !== undefined) return undefined
  try {
    commands.checkFree(call, undefined)
    return undefined
  } catch (caught) {
    return SandwireError.from(caught)
  }
}
