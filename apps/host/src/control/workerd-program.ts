import { createRequire } from 'node:module'
import { SandwireError } from '@sandwire/protocol'

/** The executable of the workerd that belongs to the installed miniflare. */
export function findWorkerd(): string {
  const found: unknown = createRequire(Bun.resolveSync('miniflare', import.meta.dir))('workerd')
  if (typeof found === 'object' && found !== null && 'default' in found && typeof found.default === 'string')
    return found.default
  throw new SandwireError('internal', 'Cannot find workerd: run npm install')
}
