import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { SandwireError } from '@sandwire/protocol'

/**
 * The executable of the workerd that this package names: a newer one than miniflare's, which keeps every connection to a container
 * open after it was closed.
 */
export function findWorkerd(): string {
  const found: unknown = createRequire(import.meta.url)(fileURLToPath(import.meta.resolve('workerd')))
  if (typeof found === 'object' && found !== null && 'default' in found && typeof found.default === 'string')
    return found.default
  throw new SandwireError('internal', 'Cannot find workerd: run npm install')
}
