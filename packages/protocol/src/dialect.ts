import { SandwireError } from './errors.ts'
import type { Dialect } from './server/attachment.ts'
import { SUBPROTOCOL } from './version.ts'

/** Most of a name that is said back. */
const MAX_NAME_CHARS = 40
/** What begins so is a credential that was meant to stand beside a name, and is never said back. */
const CREDENTIAL = /^sandwire\.ticket\./i

/** The subprotocols in a `Sec-WebSocket-Protocol` header. */
function offered(header: string | null): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** The dialect that a `Sec-WebSocket-Protocol` header asks for; one that names only unknown ones has none to speak. */
export function dialectOf(header: string | null): Dialect {
  return offered(header).includes(SUBPROTOCOL) ? 'v1' : 'plain'
}

/** Throws `version_unsupported` when subprotocols are offered and none is known: the client would be misunderstood. */
export function checkSubprotocols(header: string | null): void {
  const names = offered(header)
  if (names.length === 0 || names.includes(SUBPROTOCOL)) return
  const [first] = names
    .map((name) => name.replace(/[^\x21-\x7e]/g, ''))
    .filter((name) => !CREDENTIAL.test(name))
  const which =
    first === undefined ? 'without a subprotocol' : `the subprotocol "${first.slice(0, MAX_NAME_CHARS)}"`
  throw new SandwireError(
    'version_unsupported',
    `Cannot speak ${which}: offer "${SUBPROTOCOL}", or none for the plain dialect`,
  )
}
