import { connect } from 'cloudflare:sockets'
import { type Provider } from '../provider.ts'
import type { Config } from '../../config.ts'
import type { Env } from '../../env.ts'
import { SandboxdClient } from '../../sandbox/sandboxd-client.ts'
import type { Signer } from '../../signer.ts'
import type { Breaker } from '../breaker.ts'
import type { ContainerStore } from '../container/container-store.ts'
import { SpritesApi } from './api.ts'
import { openDuplex } from './byte-duplex.ts'
import { Relay } from './relay.ts'
import {
  type AcceptOptions,
  checkSprites,
  type SpritesOptions,
  SpritesProvider,
  type SpritesProviderDependencies,
  spritesHealth,
} from './sprites.ts'
import type { WebSocketClient } from './websocket-client.ts'

export interface OpenSpritesDependencies {
  readonly env: Pick<Env, 'SPRITES' | 'SPRITES_API_TOKEN'>
  readonly settings: NonNullable<Config['sprites']>
  readonly breaker: Breaker
  readonly signer: () => Promise<Signer>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly count: SpritesProviderDependencies['count']
}

/** What a sandbox's object passes to its provider. */
interface SpritesContext {
  readonly store: ContainerStore
  readonly savesFiles: boolean
  readonly hold: (work: Promise<unknown>) => void
}

/** The response that gives a client one end of a WebSocket pair; the other end is relayed. */
function relaySocket(
  socket: WebSocketClient,
  { hasWindows, register }: AcceptOptions,
  { hold, count }: Pick<SpritesContext, 'hold'> & Pick<OpenSpritesDependencies, 'count'>,
): Response {
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  server.binaryType = 'arraybuffer'
  const ended = register(() => relay.end(DISCONNECTED, ''))
  const relay = new Relay(server, socket, hasWindows, (code) => {
    count('sandwire_sprites_disconnects_total', { code: String(code) })
    ended()
  })
  server.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') relay.receive(data)
    else if (data instanceof ArrayBuffer) relay.receive(new Uint8Array(data))
  })
  server.addEventListener('close', ({ code, reason }) => relay.clientClosed(code, reason))
  server.addEventListener('error', () => relay.clientClosed(DISCONNECTED, ''))
  hold(relay.run())
  return new Response(null, { status: 101, webSocket: client, headers: socket.headers })
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
    providerOf: ({ store, savesFiles, hold }) =>
      new SpritesProvider({
        ...sockets,
        options,
        api,
        store,
        savesFiles,
        sleep,
        count,
        mintEpoch: () => crypto.randomUUID(),
        acceptSocket: (socket, accept) => relaySocket(socket, accept, { hold, count }),
      }),
  }
}
