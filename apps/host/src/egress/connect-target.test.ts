import { expect, test } from 'bun:test'
import { connectToTarget, resolveName } from './connect-target.ts'

/** A name server that never answers names that begin with `slow`, and has one address for others. */
async function openNameServer(): Promise<Disposable & { readonly server: string; readonly asked: string[] }> {
  const asked: string[] = []
  const socket = await Bun.udpSocket({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(answering, question, port, address) {
        const length = question[12] ?? 0
        const label = question.subarray(13, 13 + length).toString()
        const end = question.indexOf(0, 12) + 5
        const isIpv4 = question.readUInt16BE(end - 4) === 1
        asked.push(label)
        if (label.startsWith('slow')) return
        const header = Buffer.from([
          ...question.subarray(0, 2),
          0x81,
          0x80,
          0,
          1,
          0,
          isIpv4 ? 1 : 0,
          0,
          0,
          0,
          0,
        ])
        const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 93, 184, 216, 34])
        const parts = [header, question.subarray(12, end), ...(isIpv4 ? [answer] : [])]
        answering.send(Buffer.concat(parts), port, address)
      },
    },
  })
  return { server: `127.0.0.1:${socket.port}`, asked, [Symbol.dispose]: () => socket.close() }
}

test('names that a server does not answer delay no others, and end when they are canceled', async () => {
  using names = await openNameServer()
  const canceled = new AbortController()
  const slow = Array.from({ length: 100 }, (_, index) =>
    resolveName(`slow${index}.example.com`, canceled.signal, [names.server]),
  )
  const never = new AbortController().signal
  expect(await resolveName('quick.example.com', never, [names.server])).toEqual(['93.184.216.34'])
  canceled.abort()
  expect(await Promise.all(slow)).toEqual(slow.map(() => []))
})

test('a name that leads to an address of this machine is blocked and not dialed (threat T21)', async () => {
  const own = '93.184.216.34'
  const result = await connectToTarget(
    { host: { kind: 'name', name: 'own.example.com' }, port: 80 },
    {
      checkPolicy: () => undefined,
      resolve: async () => [own],
      dial: () => Promise.reject(new Error('Dialed')),
      ownAddresses: () => [own],
    },
    new AbortController().signal,
  )
  expect(result).toEqual({ kind: 'blocked', reason: 'address_refused' })
})
