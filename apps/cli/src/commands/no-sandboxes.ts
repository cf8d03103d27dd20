import { shape } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { atLeast } from '../server/at-least.ts'
import type { CommandContext } from './command.ts'

const whoShape = atLeast({ scopes: shape.list(shape.text(64), 16), guest: shape.bool })
const capabilitiesShape = atLeast({ features: atLeast({ sandbox: shape.bool }) })

/** An answer, or undefined where the server has none: advice is left out then. */
async function ask<T>(
  { api }: CommandContext,
  path: string,
  expected: shape.Shape<T>,
): Promise<T | undefined> {
  try {
    return expected.decode(await api.request('GET', path))
  } catch {
    // What was asked for has been answered; only advice depends on this.
    return undefined
  }
}

/** What to say to somebody who sees no sandboxes: how to get one, where that is possible for them. */
export async function adviseOnNone(context: CommandContext): Promise<string> {
  const { program, server, urlOption } = context
  const [who, capabilities] = await Promise.all([
    ask(context, '/api/whoami', whoShape),
    ask(context, '/api/capabilities', capabilitiesShape),
  ])
  if (who?.guest === true) return `no sandboxes; see what is shared with you: ${program} grants${urlOption}`
  if (who?.scopes.includes('admin') !== true || capabilities === undefined) return 'no sandboxes'
  if (capabilities.features.sandbox) return `no sandboxes yet; make one: ${program} create NAME${urlOption}`
  return `no sandboxes yet; this server has one, which is made when something runs in it: ${program} ${shellQuote(server)}`
}
