import { connect } from 'cloudflare:sockets'
import { type Provider } from '../provider.ts'
import type { Config } from '../../config.ts'
import type { Env } from '../../env.ts'
import type { Log } from '../../log.ts'
import { SandboxdClient } from '../../sandbox/sandboxd-client.ts'
import type { Signer } from '../../signer.ts'
import type { Breaker } from '../breaker.ts'
import type { ContainerStore } from '../container/container-store.ts'
import { SpritesApi } from './api.ts'
import { openDuplex } from './byte-duplex.ts'
import type { ExecStore } from './exec-store.ts'
import { Relay, type RelayedSocket } from './relay.ts'
import {
  type AcceptOptions,
  checkSprites,
  type SpritesOptions,
  SpritesProvider,
  type SpritesProviderDependencies,
  spritesHealth,
} from './sprites.ts'
import type { ClientHandlers } from './exec-sessions.ts'
import type { WebSocketClient } from './websocket-client.ts'

export interface OpenSpritesDependencies {
  readonly env: Pick<Env, 'SPRITES' | 'SPRITES_API_TOKEN'>
  readonly settings: NonNullable<Config['sprites']>
  readonly breaker: Breaker
  readonly signer: () => Promise<Signer>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly count: SpritesProviderDependencies['count']
  readonly log: Log
}

/** What a sandbox's object passes to its provider. */
interface SpritesContext {
  readonly store: ContainerStore
  readonly execs: ExecStore
  readonly sandbox: () => string
  readonly savesFiles: boolean
  readonly hold: (work: Promise<unknown>) => void
  readonly wakeBy: (atMs: number) => void
}

/** A WebSocket pair: one end for the response to the client, the other held here. */
function acceptClient({ message, closed }: ClientHandlers): {
  readonly socket: RelayedSocket
  readonly response: Response
} {
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  server.binaryType = 'arraybuffer'
  server.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') message(data)
    else if (data instanceof ArrayBuffer) message(new Uint8Array(data))
  })
  const end = (code: number, reason: string): void => {
    try {
      // workerd keeps the connection of a client that ended without a close frame, which may still wait for output.
      server.close(DISCONNECTED)
    } catch {
      // It is closed.
    }
    closed(code, reason)
  }
  server.addEventListener('close', ({ code, reason }) => end(code, reason))
  server.addEventListener('error', () => end(DISCONNECTED, ''))
  return { socket: server, response: new Response(null, { status: 101, webSocket: client }) }
}

/** The response that gives a client one end of a WebSocket pair; the other end is relayed. */
function relaySocket(
  socket: WebSocketClient,
  { hasWindows, register }: AcceptOptions,
  { hold, count }: Pick<SpritesContext, 'hold'> & Pick<OpenSpritesDependencies, 'count'>,
): Response {
  const { socket: server, response } = acceptClient({
    message: (message) => relay.receive(message),
    closed: (code, reason) => relay.clientClosed(code, reason),
  })
  const ended = register(() => relay.end(DISCONNECTED, ''))
  const relay = new Relay(server, socket, hasWindows, (code) => {
    count('sandwire_sprites_disconnects_total', { code: String(code) })
    ended()
  })
  hold(relay.run())
  return new Response(null, { status: 101, webSocket: response.webSocket, headers: socket.headers })
}

/** Clients resume after it. */
const DISCONNECTED = 1012

/** The provider of each sandbox's object, and the health of the API for all of them. */
export function openSprites({
  env,
  settings,
  breaker,
  signer,
  nowMs,
  sleep,
  count,
  log,
}: OpenSpritesDependencies): {
  readonly health: Pick<Provider, 'health'>
  readonly providerOf: (context: SpritesContext) => Provider
} {
  const { SPRITES: network } = env
  const options: SpritesOptions = { ...settings, token: env.SPRITES_API_TOKEN ?? '' }
  const api = new SpritesApi(options, {
    fetch: (url, init) => (network === undefined ? fetch(url, init) : network.fetch(url, init)),
    breaker,
    nowMs,
    sleep,
    random: () => Math.random(),
  })
  const sockets = {
    connect: (address: SocketAddress, isSecure: boolean) => {
      const socketOptions: SocketOptions = { secureTransport: isSecure ? 'on' : 'off', allowHalfOpen: false }
      const socket =
        network === undefined ? connect(address, socketOptions) : network.connect(address, socketOptions)
      // A socket carries bytes; the types of the platform do not say so.
      const readable = socket.readable as ReadableStream<Uint8Array>
      const writable = socket.writable as WritableStream<Uint8Array>
      return openDuplex({ readable, writable, close: () => socket.close() })
    },
    random: (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes),
    nowMs,
    every: (ms: number, run: () => void) => {
      const timer = setInterval(run, ms)
      return () => clearInterval(timer)
    },
    checkVersion: async (sandbox: string, request: Provider['fetch']) =>
      new SandboxdClient({
        sandbox,
        provider: { fetch: request },
        signer: await signer(),
        nowMs,
      }).readVersion('', crypto.randomUUID()),
  }
  return {
    health: {
      health: async () => {
        await checkSprites(options, api, sockets)
        return spritesHealth()
      },
    },
    providerOf: ({ store, execs, sandbox, savesFiles, hold, wakeBy }) =>
      new SpritesProvider({
        ...sockets,
        options,
        api,
        store,
        execs,
        sandbox,
        savesFiles,
        hold,
        wakeBy,
        log,
        acceptClient,
        yieldTurn: () => sleep(0),
        mintId: () => crypto.randomUUID(),
        sleep,
        count,
        mintEpoch: () => crypto.randomUUID(),
        acceptSocket: (socket, accept) => relaySocket(socket, accept, { hold, count }),
      }),
  }
}
