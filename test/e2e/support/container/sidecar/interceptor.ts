import { createServer, type Socket } from 'node:net'
import type { Certificates } from './certificates.ts'
import { type Opening, readOpening } from './client-hello.ts'
import { readOriginalDestination } from './original-destination.ts'
import { couple, dial, readHead } from './tunnel.ts'

/** A client that waits for the server to speak first is forwarded after this, without a name. */
const SILENT_MS = 300
/** Status by which workerd takes over as the server: TLS is terminated here. Any other success means pass-through. */
const TERMINATE = '200'

export interface Upstream {
  readonly gateway: string
  readonly egressPort: () => number
}

interface Caught {
  readonly opening: Opening
  readonly bytes: Buffer
}

/** Forwards every outgoing TCP connection to workerd, with its requested name. */
export function catchConnections(port: number, upstream: Upstream, certificates: Certificates): void {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: false }, (client) => {
    client.on('error', () => client.destroy())
    const destination = readOriginalDestination(client)
    if (destination === undefined) client.destroy()
    else void forward(client, destination, upstream, certificates).catch(() => client.destroy())
  })
  server.listen(port, '127.0.0.1')
}

function readCaught(client: Socket): Promise<Caught> {
  const { promise, resolve } = Promise.withResolvers<Caught>()
  let bytes = Buffer.alloc(0)
  const done = (opening: Opening): void => {
    clearTimeout(timer)
    client.off('data', take)
    client.off('end', giveUp)
    client.pause()
    resolve({ opening, bytes })
  }
  const take = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk])
    const opening = readOpening(bytes)
    if (opening.kind !== 'partial') done(opening)
  }
  const giveUp = (): void => done({ kind: 'other' })
  const timer = setTimeout(giveUp, SILENT_MS)
  client.on('data', take)
  client.once('end', giveUp)
  return promise
}

/** The header that tells workerd how to handle a connection. */
function nameHeader(opening: Opening): string {
  if (opening.kind === 'tls' && opening.serverName !== undefined)
    return `X-Tls-Sni: ${opening.serverName}\r\n`
  if (opening.kind === 'http' && opening.host !== undefined) return `X-Hostname: ${opening.host}\r\n`
  return ''
}

async function forward(
  client: Socket,
  destination: string,
  { gateway, egressPort }: Upstream,
  certificates: Certificates,
): Promise<void> {
  const { opening, bytes } = await readCaught(client)
  const tunnel = await dial(gateway, egressPort())
  tunnel.on('error', () => client.destroy())
  client.on('close', () => tunnel.destroySoon())
  tunnel.write(`CONNECT ${destination} HTTP/1.1\r\nHost: ${destination}\r\n${nameHeader(opening)}\r\n`)
  const { lines, rest } = await readHead(tunnel)
  const status = /^HTTP\/1\.1 (2\d\d)/.exec(lines[0] ?? '')?.[1]
  if (status === undefined) {
    tunnel.destroy()
    client.destroy()
    return
  }
  if (status === TERMINATE && opening.kind === 'tls' && isName(opening.serverName)) {
    const { port, awaited } = await certificates.terminate(opening.serverName)
    const inner = await dial('127.0.0.1', port)
    awaited.set(inner.localPort ?? 0, (plain) => {
      if (rest.length > 0) plain.write(rest)
      couple(plain, tunnel)
    })
    inner.write(bytes)
    couple(client, inner)
    return
  }
  if (bytes.length > 0) tunnel.write(bytes)
  if (rest.length > 0) client.write(rest)
  couple(client, tunnel)
}

/** Valid names become part of a file name. */
function isName(name: string | undefined): name is string {
  return name !== undefined && /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(name)
}
