import { SandwireError } from './errors.ts'
import type { Dialect } from './server/attachment.ts'
import { SUBPROTOCOL } from './version.ts'

/** Characters of an offered name that an error repeats. */
const MAX_NAME_CHARS = 40
/** A ticket in the list of subprotocols; never repeated in an error. */
const CREDENTIAL = /^sandwire\.ticket\./i

/** The subprotocols in a `Sec-WebSocket-Protocol` header. */
function offered(header: string | null): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** The dialect that a `Sec-WebSocket-Protocol` header selects. */
export function dialectOf(header: string | null): Dialect {
  return offered(header).includes(SUBPROTOCOL) ? 'v1' : 'plain'
}

/** Throws `version_unsupported` when subprotocols are offered and none is known. */
export function checkSubprotocols(header: string | null): void {
  const names = offered(header)
  if (names.length === 0 || names.includes(SUBPROTOCOL)) return
  const [first] = names
    .map((name) => name.replace(/[^\x21-\x7e]/g, ''))
    .filter((name) => !CREDENTIAL.test(name))
  const described =
    first === undefined ? 'without a subprotocol' : `the subprotocol "${first.slice(0, MAX_NAME_CHARS)}"`
  throw new SandwireError(
    'version_unsupported',
    `Cannot speak ${described}: offer "${SUBPROTOCOL}", or none for the plain dialect`,
  )
}
