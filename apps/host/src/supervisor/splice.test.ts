import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { eventually, Random } from '@sandwire/testing'
import { Splice } from './splice.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'splice-'))
let open: Disposable[] = []

afterEach(() => {
  for (const each of open) each[Symbol.dispose]()
  open = []
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let count = 0
/** A daemon on a unix socket, and the sockets it has accepted. */
async function listen(
  onSocket: (socket: Socket) => void,
): Promise<{ path: string; server: Server; sockets: Socket[] }> {
  count += 1
  const file = path.join(folder, `${count}.sock`)
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(file, resolve))
  open.push({
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  })
  return { path: file, server, sockets }
}

async function spliced(onSocket: (socket: Socket) => void, maxConnections = 16) {
  const daemon = await listen(onSocket)
  const fulls: number[] = []
  const splice = new Splice({ maxConnections, onFull: (connections) => fulls.push(connections) })
  splice.open(daemon.path)
  open.push({ [Symbol.dispose]: () => splice.close() })
  return { splice, daemon, fulls }
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined)
  open.push({ [Symbol.dispose]: () => socket.destroy() })
  return socket
}

/** What a socket sends until its end; unlike an iteration it leaves the other direction open. */
function readToEnd(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  return new Promise((resolve) => socket.once('end', () => resolve(Buffer.concat(chunks))))
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

describe('a splice', () => {
  test('carries bytes both ways and passes the end of either on alone', async () => {
    const { splice } = await spliced((socket) => {
      // Answers only once it has seen the end of what was asked.
      void readToEnd(socket).then((bytes) => socket.end(`got ${bytes.length}`))
    })
    const client = dial(splice.port)
    client.end('hello')
    expect(String(await readToEnd(client))).toBe('got 5')
    await eventually(() => splice.connections === 0, { what: 'the connection to go' })
  })

  test('lets the daemon end first and the client write on', async () => {
    const { promise, resolve } = Promise.withResolvers<Buffer>()
    const { splice } = await spliced((socket) => {
      socket.end('bye')
      void readToEnd(socket).then(resolve)
    })
    const client = dial(splice.port)
    expect(String(await readToEnd(client))).toBe('bye')
    client.end('still here')
    expect(String(await promise)).toBe('still here')
  })

  test('keeps every byte in order both ways at once, however the readers stall', async () => {
    const { splice } = await spliced((socket) => socket.pipe(socket))
    const client = dial(splice.port)
    const sent = createHash('sha256')
    const received = createHash('sha256')
    const total = 48 * 1024 * 1024
    let got = 0
    client.on('data', (bytes: Buffer) => {
      received.update(bytes)
      got += bytes.length
      if (got % 7 === 0) {
        client.pause()
        setImmediate(() => client.resume())
      }
    })
    const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
    for (let at = 0; at < total;) {
      const chunk = Buffer.alloc(Math.min(total - at, 1 + ((at * 31) % 300_000)), at % 251)
      sent.update(chunk)
      at += chunk.length
      if (!client.write(chunk)) await new Promise<void>((resolve) => client.once('drain', () => resolve()))
    }
    client.end()
    await ended
    expect(got).toBe(total)
    expect(received.digest('hex')).toBe(sent.digest('hex'))
  })

  test('delivers the last bytes of a daemon that is gone to a reader that takes its time', async () => {
    const total = 8 * 1024 * 1024
    const { splice, daemon } = await spliced((socket) => {
      socket.write(Buffer.alloc(total, 7), () => socket.destroy())
    })
    const client = dial(splice.port)
    client.pause()
    await eventually(() => daemon.sockets.length === 1, { what: 'the daemon to be reached' })
    let gotBytes = 0
    client.on('data', (bytes: Buffer) => {
      gotBytes += bytes.length
      client.pause()
      setTimeout(() => client.resume(), 1)
    })
    const gone = closed(client)
    client.once('end', () => client.end())
    client.resume()
    await gone
    expect(gotBytes).toBe(total)
  })

  test('does not read what the other end does not take', async () => {
    const { splice, daemon } = await spliced((socket) => socket.pause())
    const client = dial(splice.port)
    const chunk = Buffer.alloc(1024 * 1024)
    // What the kernel and the two sockets hold is a few megabytes; the rest stays with the client.
    for (let index = 0; index < 64; index += 1) client.write(chunk)
    await eventually(() => daemon.sockets.length === 1, { what: 'the daemon to be reached' })
    await eventually(() => client.bytesWritten > 0 && client.writableLength > 32 * chunk.length, {
      what: 'the client to be held back',
    })
    daemon.sockets[0]?.resume()
    await eventually(() => client.writableLength === 0, { what: 'the client to be let go on' })
  })

  test('cuts one end when the other is reset', async () => {
    const { splice, daemon } = await spliced((socket) => socket.resume())
    const client = dial(splice.port)
    client.write('x')
    await eventually(() => daemon.sockets.length === 1, { what: 'the daemon to be reached' })
    client.resetAndDestroy()
    await eventually(() => daemon.sockets[0]?.closed === true || daemon.sockets[0]?.readableEnded === true, {
      what: 'the daemon to see the end',
    })
    await eventually(() => splice.connections === 0, { what: 'the connection to go' })
  })

  test('severs what there is and takes new connections', async () => {
    const { splice } = await spliced((socket) => socket.pipe(socket))
    const first = dial(splice.port)
    first.write('x')
    await new Promise((resolve) => first.once('data', resolve))
    const gone = closed(first)
    splice.sever()
    await gone
    expect(splice.connections).toBe(0)
    const second = dial(splice.port)
    second.end('again')
    expect(String(await readToEnd(second))).toBe('again')
  })

  test('(threat T31) refuses connections past its limit, says so once, and takes them again', async () => {
    const { splice, fulls } = await spliced((socket) => socket.pipe(socket), 4)
    const kept = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const client = dial(splice.port)
        client.write('x')
        await new Promise((resolve) => client.once('data', resolve))
        return client
      }),
    )
    for (let index = 0; index < 3; index += 1) await closed(dial(splice.port))
    expect(fulls).toEqual([4])
    kept[0]?.destroy()
    await eventually(() => splice.connections === 3, { what: 'room' })
    const late = dial(splice.port)
    late.end('late')
    expect(String(await readToEnd(late))).toBe('late')
  })

  test('closes a connection that leads nowhere', async () => {
    const { splice } = await spliced(() => undefined)
    splice.open(path.join(folder, 'absent.sock'))
    await closed(dial(splice.port))
    expect(splice.connections).toBe(0)
  })

  test('(threat T31) is left with nothing by connections that end in every way there is', async () => {
    const random = new Random(7)
    const { splice, daemon } = await spliced((socket) => {
      switch (random.int(0, 4)) {
        case 0:
          socket.destroy()
          return
        case 1:
          socket.write(Buffer.alloc(random.int(1, 400_000)))
          socket.destroy()
          return
        case 2:
          socket.end('early')
          socket.resume()
          return
        case 3:
          socket.once('data', () => socket.destroy())
          socket.once('end', () => socket.end())
          return
        default:
          socket.pipe(socket)
      }
    }, 64)
    const live = async (): Promise<void> => {
      const client = dial(splice.port)
      const gone = closed(client)
      if (random.chance(0.7)) client.write(Buffer.alloc(random.int(1, 400_000)))
      switch (random.int(0, 4)) {
        case 0:
          client.destroy()
          break
        case 1:
          client.resetAndDestroy()
          break
        case 2:
          client.once('data', () => client.resetAndDestroy())
          client.end()
          break
        case 3:
          client.resume()
          client.once('end', () => client.end())
          client.end()
          break
        default:
          client.resume()
          setImmediate(() => client.destroy())
      }
      // Some have a peer that waits as they do.
      setTimeout(() => client.destroy(), 200)
      await gone
    }
    let left = 600
    const lane = async (): Promise<void> => {
      while (left-- > 0) await live()
    }
    await Promise.all(Array.from({ length: 24 }, lane))
    await eventually(() => splice.connections === 0, { what: 'every connection to go' })
    await eventually(() => daemon.sockets.every((socket) => socket.closed || socket.readableEnded), {
      what: 'the daemon to see every end',
    })
  })
})
