import type { ClientStatus } from '@sandwire/protocol'

/**
 * What a terminal says of its connection over its screen; undefined: nothing. `before` is what it said last: what went wrong is not
 * forgotten while it tries again.
 */
export function troubleOf(status: ClientStatus, before: string | undefined): string | undefined {
  switch (status.is) {
    case 'connecting':
      return status.attempt === 1 ? 'Connecting…' : before
    case 'reconnecting':
      return `${status.why}. Reconnecting…`
    case 'failed':
      return `Disconnected. ${status.error.message}.`
    case 'attached':
    case 'exited':
    case 'detached':
      return undefined
  }
}
