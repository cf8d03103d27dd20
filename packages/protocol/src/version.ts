import { clientMessage, plainClientMessage } from './client-frames.ts'
import { plainServerMessage, serverMessage } from './server-frames.ts'

/** Set by `--define` in tests that run two versions side by side. */
declare const SANDWIRE_BUILD_PROTOCOL: number | undefined
declare const SANDWIRE_BUILD_COMPATIBLE_FROM: number | undefined

/** Version of the `sandwire.v1` messages. Changes together with the pinned hash of their schemas. */
export const PROTOCOL_VERSION: number =
  typeof SANDWIRE_BUILD_PROTOCOL === 'number' ? SANDWIRE_BUILD_PROTOCOL : 1
/** Oldest compatible version. */
export const COMPATIBLE_FROM: number =
  typeof SANDWIRE_BUILD_COMPATIBLE_FROM === 'number' ? SANDWIRE_BUILD_COMPATIBLE_FROM : 1
/** Name in `Sec-WebSocket-Protocol` that selects the exact dialect. */
export const SUBPROTOCOL = 'sandwire.v1'
/** Version of the programs, shown by `--version` and `/__meta/version`. */
export const SOFTWARE_VERSION = '0.1.0'

/** Canonical text of every message of both dialects; its hash is pinned by a test. */
export function describeSchema(): string {
  return [
    `client\n${clientMessage.describe}`,
    `server\n${serverMessage.describe}`,
    `plain client\n${plainClientMessage.describe}`,
    `plain server\n${plainServerMessage.describe}`,
  ].join('\n\n')
}
