import { expect, spyOn, test } from 'bun:test'
import { ApiError } from '../api/request.ts'
import type { Sandbox } from '../api/sandboxes.ts'
import { EMPTY, openTab } from '../layout/layout.ts'
import { formatFailure, type TextStorage, Workbench } from './workbench.ts'

const sandbox = (name: string): Sandbox => ({
  id: name.repeat(32),
  name,
  state: 'running',
  reason: null,
  createdMs: 0,
  startedMs: 0,
  lastActivityMs: 0,
  sleepAfterSeconds: null,
  ephemeral: false,
  saved: null,
  network: {
    policy: 'none',
    allow: [],
  },
  isolation: null,
})

/** A server whose account can change and whose lists can be held. */
class Server implements Disposable {
  account = 'ann'
  /** Holds the next list. */
  gate: Promise<void> = Promise.resolve()
  /** Lists fail. */
  isBroken = false
  readonly #fetch = spyOn(globalThis, 'fetch').mockImplementation(
    Object.assign((path: unknown) => this.#answer(String(path)), { preconnect: fetch.preconnect }),
  )

  async #answer(path: string): Promise<Response> {
    const { account, gate } = this
    if (path === '/api/whoami')
      return Response.json({ account, name: account, guest: false, firstSandbox: 'dev' })
    await gate
    if (this.isBroken)
      return Response.json({ error: { code: 'internal', message: 'Broken' } }, { status: 500 })
    return Response.json({ sandboxes: [sandbox(account.slice(0, 1))] })
  }

  [Symbol.dispose](): void {
    this.#fetch.mockRestore()
  }
}

function createStorage(): TextStorage {
  const kept = new Map<string, string>()
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => void kept.set(key, text) }
}

async function open(shared = createStorage(), own = createStorage()): Promise<Workbench> {
  const workbench = new Workbench(shared, own)
  await workbench.open(AbortSignal.abort())
  return workbench
}

const shown = (workbench: Workbench) => {
  const sandboxes = workbench.sandboxes.get()
  return sandboxes.kind === 'ready' ? sandboxes.value.map(({ name }) => name) : sandboxes
}

test('lists the sandboxes of the signed-in user and selects the first', async () => {
  using _ = new Server()
  const workbench = await open()
  expect(shown(workbench)).toEqual(['a'])
  expect(workbench.current.get()).toBe(sandbox('a').id)
})

test('never shows the sandboxes of the previous account', async () => {
  using server = new Server()
  const workbench = await open()
  const gate = Promise.withResolvers<void>()
  server.gate = gate.promise
  server.account = 'bob'
  server.isBroken = true
  const switched = workbench.checkUser()
  const seen: unknown[] = []
  const stop = workbench.user.subscribe(() => seen.push(shown(workbench), workbench.current.get()))
  gate.resolve()
  await switched
  stop()
  expect(seen).toEqual([{ kind: 'loading' }, undefined])
  expect(shown(workbench)).toMatchObject({ kind: 'failed' })
  expect(workbench.current.get()).toBeUndefined()
})

/** Opens a file in a new tab. */
function openFile(workbench: Workbench, path: string): void {
  workbench.changeLayout((layout) => openTab(layout, { kind: 'file', sandbox: 'a', path }, workbench.mint))
}

const pathsIn = (workbench: Workbench) =>
  Object.values(workbench.layout.get().views).map((view) => (view.kind === 'file' ? view.path : view.kind))

test('a window restores its own tabs, whatever other windows have open', async () => {
  using _ = new Server()
  const [shared, first, second] = [createStorage(), createStorage(), createStorage()]
  openFile(await open(shared, first), 'one')
  const other = await open(shared, second)
  expect(pathsIn(other)).toEqual(['one'])
  openFile(other, 'two')
  expect(pathsIn(await open(shared, first))).toEqual(['one'])
  expect(pathsIn(await open(shared, second))).toEqual(['one', 'two'])
  expect(pathsIn(await open(shared))).toEqual(['one', 'two'])
})

test('a window in which everything was closed stays empty', async () => {
  using _ = new Server()
  const [shared, first] = [createStorage(), createStorage()]
  const workbench = await open(shared, first)
  workbench.changeLayout(() => EMPTY)
  openFile(await open(shared), 'of another window')
  expect(pathsIn(await open(shared, first))).toEqual([])
})

test('the next account sees nothing of what was open in any window', async () => {
  using server = new Server()
  const [shared, first, second] = [createStorage(), createStorage(), createStorage()]
  const workbench = await open(shared, first)
  openFile(workbench, 'of ann')
  server.account = 'bob'
  openFile(await open(shared, second), 'of bob')
  // A window that does not know yet leaves the stored layout alone.
  openFile(workbench, 'more of ann')
  await workbench.checkUser()
  expect(pathsIn(workbench)).toEqual(['of bob'])
  expect(pathsIn(await open(shared, first))).toEqual(['of bob'])
  expect(pathsIn(await open(shared))).toEqual(['of bob'])
})

test('a returning account finds its tabs, also in a new window', async () => {
  using server = new Server()
  const [shared, first] = [createStorage(), createStorage()]
  openFile(await open(shared, first), 'of ann')
  server.account = 'bob'
  openFile(await open(shared), 'of bob')
  server.account = 'ann'
  expect(pathsIn(await open(shared, first))).toEqual(['of ann'])
  expect(pathsIn(await open(shared))).toEqual(['of ann'])
})

test('drops a list that was requested for the previous account', async () => {
  using server = new Server()
  const workbench = await open()
  const gate = Promise.withResolvers<void>()
  server.gate = gate.promise
  const late = workbench.refreshSandboxes()
  server.gate = Promise.resolve()
  server.account = 'bob'
  await workbench.checkUser()
  expect(shown(workbench)).toEqual(['b'])
  gate.resolve()
  await late
  expect(shown(workbench)).toEqual(['b'])
  expect(workbench.current.get()).toBe(sandbox('b').id)
  expect(Object.values(workbench.names.all.get())).toEqual(['b'])
})

test('drops a failure of a request for the previous account', async () => {
  using server = new Server()
  const workbench = await open()
  const gate = Promise.withResolvers<void>()
  server.gate = gate.promise
  const late = workbench.refreshSandboxes()
  server.gate = Promise.resolve()
  server.account = 'bob'
  await workbench.checkUser()
  gate.reject(new Error('No network'))
  await late
  expect(workbench.isOffline.get()).toBe(false)
})

test("names the operation of a failure unless the server's message does", () => {
  const refused = new ApiError('file_too_large', 'Cannot use the file: too large', 413)
  expect(formatFailure('Cannot save a.txt', refused)).toBe('Cannot use the file: too large')
  const unreachable = new ApiError('unreachable', 'Server unreachable', 0)
  expect(formatFailure('Cannot save a.txt', unreachable)).toBe('Cannot save a.txt: Server unreachable')
  expect(formatFailure('Cannot create a.txt', new Error('it already exists'))).toBe(
    'Cannot create a.txt: it already exists',
  )
})
