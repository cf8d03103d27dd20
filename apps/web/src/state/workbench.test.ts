import { expect, spyOn, test } from 'bun:test'
import type { Sandbox } from '../api/sandboxes.ts'
import { Workbench } from './workbench.ts'

const sandbox = (name: string): Sandbox => ({
  ...{ id: name.repeat(32), name, state: 'running', reason: null },
  ...{ createdMs: 0, startedMs: 0, lastActivityMs: 0, sleepAfterSeconds: null, ephemeral: false },
  network: { policy: 'none', allow: [] },
  isolation: null,
})

/** A server whose account can be changed, and whose lists can be held back. */
class Server implements Disposable {
  account = 'ann'
  /** What the next list waits for. */
  gate: Promise<void> = Promise.resolve()
  readonly #fetch = spyOn(globalThis, 'fetch').mockImplementation(
    Object.assign((path: unknown) => this.#answer(String(path)), { preconnect: fetch.preconnect }),
  )

  async #answer(path: string): Promise<Response> {
    const { account, gate } = this
    if (path === '/api/whoami') return Response.json({ account, name: account, guest: false })
    await gate
    return Response.json({ sandboxes: [sandbox(account.slice(0, 1))] })
  }

  [Symbol.dispose](): void {
    this.#fetch.mockRestore()
  }
}

async function open(): Promise<Workbench> {
  const kept = new Map<string, string>()
  const workbench = new Workbench({
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => void kept.set(key, text),
  })
  await workbench.open(AbortSignal.abort())
  return workbench
}

const shown = (workbench: Workbench) => {
  const sandboxes = workbench.sandboxes.get()
  return sandboxes.is === 'ready' ? sandboxes.value.map(({ name }) => name) : sandboxes
}

test('shows the sandboxes of who is signed in, and the first of them', async () => {
  using _ = new Server()
  const workbench = await open()
  expect(shown(workbench)).toEqual(['a'])
  expect(workbench.current.get()).toBe(sandbox('a').id)
})

test('a list that was asked for as somebody else is not shown to who is here by then', async () => {
  using server = new Server()
  const workbench = await open()
  const gate = Promise.withResolvers<void>()
  server.gate = gate.promise
  const late = workbench.refreshSandboxes()
  server.gate = Promise.resolve()
  server.account = 'bob'
  await workbench.checkPerson()
  expect(shown(workbench)).toEqual(['b'])
  gate.resolve()
  await late
  expect(shown(workbench)).toEqual(['b'])
  expect(workbench.current.get()).toBe(sandbox('b').id)
  expect(Object.values(workbench.names.all.get())).toEqual(['b'])
})

test('a server that did not answer somebody else is not away for who is here by then', async () => {
  using server = new Server()
  const workbench = await open()
  const gate = Promise.withResolvers<void>()
  server.gate = gate.promise
  const late = workbench.refreshSandboxes()
  server.gate = Promise.resolve()
  server.account = 'bob'
  await workbench.checkPerson()
  gate.reject(new Error('No network'))
  await late
  expect(workbench.isAway.get()).toBe(false)
})
