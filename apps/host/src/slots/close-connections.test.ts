import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { eventually } from '@sandwire/testing'
import { closeConnections } from './close-connections.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'cut-'))
const children: Bun.Subprocess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A listening process, and a connection from this process to it. */
async function connect(name: string): Promise<{ readonly pid: number; readonly isOpen: () => boolean }> {
  const socket = path.join(folder, name)
  const script = `Bun.listen({unix: ${JSON.stringify(socket)}, socket: {data() {}}}); console.log('up')`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  children.push(child)
  await child.stdout.getReader().read()
  let isOpen = true
  await Bun.connect({ unix: socket, socket: { data: () => undefined, close: () => void (isOpen = false) } })
  return { pid: child.pid, isOpen: () => isOpen }
}

test('closes connections to a stopped process, and none to an excepted one', async () => {
  const [cut, kept] = [await connect('cut'), await connect('kept')]
  process.kill(cut.pid, 'SIGSTOP')
  expect(closeConnections(process.pid, new Set([kept.pid]))).toBe(true)
  await eventually(() => !cut.isOpen(), { what: 'the cut' })
  expect(kept.isOpen()).toBe(true)
})

test('ignores socket pairs, such as stdout', async () => {
  const child = Bun.spawn(['cat'], { stdin: 'pipe', stdout: 'pipe' })
  children.push(child)
  expect(closeConnections(process.pid, new Set())).toBe(true)
  await child.stdin.write('still here')
  await child.stdin.end()
  expect(await new Response(child.stdout).text()).toBe('still here')
})

test('reports a failure', () => {
  expect(closeConnections(2 ** 30, new Set())).toBe(false)
})
