import { attach } from '@sandwire/client'
import { type RunningSandboxd, startSandboxd } from '../../test/e2e/support/sandboxd.ts'
import type { Mode, Peer, Service, Stream } from './stream.ts'
import { openWebSocketStream } from './web-socket-stream.ts'

/** High limits, so that none is reached in a measurement. */
const ARGS = ['--requests-per-second', '100000', '--messages-per-second', '1000000']

export function startBenchedSandboxd(): Promise<RunningSandboxd> {
  return startSandboxd({ args: ARGS })
}

/** A sandboxd, or a sandbox behind control. */
export interface Place {
  readonly port: number
  readonly headers: { readonly authorization: string }
  readonly sandbox?: string
}

/** Adapts the client library to a stream. Without a command it is the login shell. */
export function attachStream(
  place: Place,
  command: { readonly argv: readonly string[]; readonly mode: Mode },
  port = place.port,
): Promise<Stream> {
  const [cmd, ...args] = command.argv
  const attached = Promise.withResolvers<Stream>()
  const handle = attach({
    url: `http://127.0.0.1:${port}`,
    request: {
      args,
      mode: command.mode,
      ...(cmd === undefined ? {} : { cmd }),
      ...(place.sandbox === undefined ? {} : { sandbox: place.sandbox }),
    },
    credentials: async () => ({ headers: { ...place.headers, host: `127.0.0.1:${place.port}` } }),
    onOutput: (_, bytes) => stream.onData(bytes),
  })
  const stream: Stream = {
    onData: () => {},
    write: (bytes) => void handle.write(bytes),
    ended: handle.exit.then(
      ({ code }) => code ?? undefined,
      () => undefined,
    ),
    close: () => handle.detach(),
  }
  const unsubscribe = handle.status.subscribe((status) => {
    if (status.kind === 'attached') attached.resolve(stream)
    if (status.kind === 'failed') attached.reject(status.error)
    if (status.kind !== 'connecting') unsubscribe()
  })
  return attached.promise
}

/** The exact dialect through the client library, as the command line and the browser use it. */
export const sandwireV1: Peer = {
  name: 'sandwire',
  problem: undefined,
  modes: ['pipe', 'pty'],
  serve: async (argv, mode): Promise<Service> => {
    const sandboxd = await startBenchedSandboxd()
    const connectVia = (port: number) => attachStream(sandboxd, { argv, mode }, port)
    return {
      pid: sandboxd.pid,
      port: sandboxd.port,
      connect: () => connectVia(sandboxd.port),
      connectVia,
      [Symbol.asyncDispose]: () => sandboxd[Symbol.asyncDispose](),
    }
  },
}

function exitOf(text: string): number | undefined {
  const message: unknown = JSON.parse(text)
  const isExit = typeof message === 'object' && message !== null && 'code' in message
  return isExit && typeof message.code === 'number' ? message.code : undefined
}

/** The plain dialect through the client that every WebSocket server here gets. */
export const sandwirePlain: Peer = {
  name: 'sandwire plain',
  problem: undefined,
  modes: ['pipe', 'pty'],
  serve: async (argv, mode): Promise<Service> => {
    const sandboxd = await startBenchedSandboxd()
    const [cmd, ...args] = argv
    const query = new URLSearchParams([['cmd', cmd], ...args.map((arg) => ['arg', arg]), ['mode', mode]])
    const connectVia = (port: number) =>
      openWebSocketStream({
        url: `ws://127.0.0.1:${port}/attach?${query.toString()}`,
        headers: { ...sandboxd.headers, host: `127.0.0.1:${sandboxd.port}` },
        unwrap: (message) => message.subarray(1),
        wrap: (bytes) => new Uint8Array(bytes),
        exitOf,
      })
    return {
      pid: sandboxd.pid,
      port: sandboxd.port,
      connect: () => connectVia(sandboxd.port),
      connectVia,
      [Symbol.asyncDispose]: () => sandboxd[Symbol.asyncDispose](),
    }
  },
}
