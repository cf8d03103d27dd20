import { closeSync } from 'node:fs'
import { expect, test } from 'bun:test'
import { rejectionOf } from './rejection.ts'
import { connectWithSmallBuffers, reservePort } from './small-buffer-socket.ts'

const host = '127.0.0.1'
const never = new AbortController().signal

function listenOn(port: number) {
  return Bun.listen({ hostname: host, port, socket: { data: () => undefined } })
}

test('reservePort reserves a port that refuses connections whenever nothing listens on it', async () => {
  using reserved = reservePort(host)
  for (let round = 0; round < 3; round++) {
    expect(await connectWithSmallBuffers({ host, port: reserved.port }, never)).toBeUndefined()
    const listener = listenOn(reserved.port)
    const fd = await connectWithSmallBuffers({ host, port: reserved.port }, never)
    expect(fd).toBeGreaterThan(2)
    if (fd !== undefined) closeSync(fd)
    listener.stop(true)
  }
})

test('connectWithSmallBuffers stops when its signal aborts', async () => {
  const listener = listenOn(0)
  const port = listener.port
  expect(await connectWithSmallBuffers({ host, port }, AbortSignal.abort())).toBeUndefined()
  listener.stop(true)
})

test('connectWithSmallBuffers rejects a host name', async () => {
  const failure = await rejectionOf(connectWithSmallBuffers({ host: 'localhost', port: 1 }, never))
  expect(failure.message).toBe('Cannot use the address: "localhost" is not dotted IPv4')
})
