import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { eventually } from '@sandwire/testing'
import { AcceptedSockets } from './accepted-sockets.ts'
import { raiseDescriptorLimit } from './descriptor-limit.ts'

const children: Bun.Subprocess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** Another process that accepts connections; returns its pid and port. */
async function listen(): Promise<{ readonly pid: number; readonly port: number }> {
  const script = `console.log(Bun.listen({hostname: '127.0.0.1', port: 0, socket: {data() {}}}).port)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  children.push(child)
  const { value } = await child.stdout.getReader().read()
  return { pid: child.pid, port: Number(new TextDecoder().decode(value)) }
}

async function open(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('connect', resolve)
  socket.once('error', reject)
  await promise
  return socket
}

test('lists accepted connections by network and closes those that sent least', async () => {
  const { pid, port } = await listen()
  const sockets = new AcceptedSockets(pid, port)
  expect(sockets.list()).toEqual([])
  const idle = await open(port, '127.0.0.2')
  const active = await open(port, '127.0.0.2')
  const other = await open(port, '127.0.0.3')
  active.write('a request')
  const networksOf = (): readonly string[] => (sockets.list() ?? []).map(({ network }) => network).toSorted()
  await eventually(() => networksOf().length === 3, { what: 'the connections' })
  expect(networksOf()).toEqual(['127.0.0.2', '127.0.0.2', '127.0.0.3'])
  const ended = Promise.withResolvers<void>()
  idle.once('end', ended.resolve).resume()
  sockets.close(
    (sockets.list() ?? []).filter(({ network }) => network === '127.0.0.2'),
    1,
  )
  await ended.promise
  await eventually(() => networksOf().length === 2, { what: 'the close' })
  expect([active.readyState, other.readyState]).toEqual(['open', 'open'])
  for (const socket of [idle, active, other]) socket.destroy()
})

test('holds new connections and none that are open', async () => {
  const { pid, port } = await listen()
  const sockets = new AcceptedSockets(pid, port)
  const before = await open(port, '127.0.0.1')
  await eventually(() => sockets.list()?.length === 1, { what: 'the connection' })
  sockets.hold(true)
  let isOpen = false
  const held = open(port, '127.0.0.1').then((socket) => {
    isOpen = true
    return socket
  })
  before.write('still served')
  // The kernel has the bytes acknowledged while the other connection waits.
  await eventually(() => before.bytesWritten > 0 && before.writableLength === 0, { what: 'the write' })
  expect([sockets.list()?.length, isOpen]).toEqual([1, false])
  sockets.hold(false)
  const late = await held
  await eventually(() => sockets.list()?.length === 2, { what: 'the connection' })
  for (const socket of [before, late]) socket.destroy()
})

test('has no connections of a process that has ended', () => {
  expect(new AcceptedSockets(2 ** 30, 1).list()).toEqual([])
})

test('raises the number of files that a process may open, at least to its hard limit', async () => {
  const child = Bun.spawn(['sh', '-c', 'ulimit -Sn 100; ulimit -Hn 500; echo set; exec sleep 60'], {
    stdout: 'pipe',
  })
  children.push(child)
  await child.stdout.getReader().read()
  const raised = raiseDescriptorLimit(child.pid)
  const line = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${child.pid}/limits`, 'latin1'))
  expect(raised).toBe(Number(line?.[1]))
  expect(raised).toBeGreaterThanOrEqual(500)
  expect(raiseDescriptorLimit(2 ** 30)).toBeUndefined()
})
