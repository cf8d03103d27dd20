import { textCloseOfError } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { AdaptedSession, CompatEndpoint } from '../attach-handler.ts'
import type { ConnectionAdapter, RefuseSocket } from '../attach-socket.ts'
import { parseAttach } from '../http/attach-parameters.ts'
import { SessionAdapter, type SessionAdapterDependencies, takePingMs } from './session-adapter.ts'
import { TextCodec } from './text-codec.ts'

/** Control forwards `/terminal/:session` to this path, for clients that offer no subprotocol. */
export const TEXT_PATH = '/envelopes/text'

/** Terminals for pages that draw every message and send what is typed. */
export class TextEndpoint implements CompatEndpoint {
  readonly #deps: SessionAdapterDependencies

  constructor(deps: SessionAdapterDependencies) {
    this.#deps = deps
  }

  /** The query of a `sandwire.v1` attach that joins a session, with the interval of pings in seconds. */
  parse(query: URLSearchParams): ReturnType<CompatEndpoint['parse']> {
    const rest = new URLSearchParams(query)
    const ping = takePingMs(rest)
    const parameters = parseAttach(rest, 'v1')
    if (parameters.kind !== 'join')
      throw new SandwireError('bad_request', 'Cannot show a terminal: the parameter "session" is missing')
    const { cols, rows } = parameters.rights
    const size = rest.has('cols') && rest.has('rows') ? { cols, rows } : undefined
    return { parameters, adapt: (session) => this.#adapt(session, new TextCodec(size)), ...ping }
  }

  /** Clients have no windows, offsets, roles or heartbeats, and want to see what is on the screen now. */
  readonly rights = {
    acknowledgement: 'connection',
    roleWithoutLease: 'collaborator',
    hasSilenceTimeout: false,
    skipsBacklog: true,
  } as const

  readonly refuse: RefuseSocket = (error) => {
    const { notice, code, reason } = textCloseOfError(error)
    return { message: notice, code, reason }
  }

  #adapt(adapted: AdaptedSession, codec: TextCodec): ConnectionAdapter {
    if (adapted.runner.session.options.mode !== 'pty')
      throw new SandwireError(
        'needs_v1',
        'Cannot show the session as text: it has no terminal, and needs the subprotocol "sandwire.v1"',
      )
    return new SessionAdapter(adapted, this.#deps, { codec, refuse: this.refuse, canTake: () => false })
  }
}
