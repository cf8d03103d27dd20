import { isSandboxId } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** A DNS label, so that a name can become part of a host name. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** How a request names a sandbox. */
export type SandboxRef =
  | { readonly by: 'id'; readonly id: string }
  | { readonly by: 'name'; readonly name: string }

/** Whether the text may name a sandbox: one spelling, and never mistaken for an id. */
export function isSandboxName(text: string): boolean {
  return NAME.test(text) && !isSandboxId(text)
}

/** Reads an id or a name; throws `bad_request` for anything else. */
export function parseSandboxRef(text: string): SandboxRef {
  if (isSandboxId(text)) return { by: 'id', id: text }
  if (isSandboxName(text)) return { by: 'name', name: text }
  throw new SandwireError('bad_request', 'Cannot use the sandbox: neither an id nor a name')
}
