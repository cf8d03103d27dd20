import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SandwireError } from '@sandwire/protocol'
import { OutputBudget } from '../src/sandbox/output-budget.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient, textIn } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'

const NOW = 1_800_000_000_000
const BURST_BYTES = 16 * 1024

describe('the output budget', () => {
  const refusalOf = (budget: OutputBudget, caller: string, nowMs: number): SandwireError | undefined => {
    try {
      budget.check(caller, nowMs)
      return undefined
    } catch (error) {
      return error as SandwireError
    }
  }

  test('grants the available bytes, then returns when there is enough again', () => {
    const budget = new OutputBudget(2_000)
    expect(budget.take('bob', 10_000, NOW)).toBe(10_000)
    expect(budget.take('bob', 1_000_000, NOW)).toBe(BURST_BYTES - 10_000)
    expect(budget.take('bob', 1, NOW)).toBe(0)
    expect(refusalOf(budget, 'bob', NOW)).toMatchObject({ code: 'rate_limited', retryAfterMs: 1_000 })
    expect(refusalOf(budget, 'bob', NOW + 1_000)).toBeUndefined()
    expect(budget.take('bob', 1_000_000, NOW + 1_000)).toBe(2_000)
    // Each account has its own budget.
    expect(budget.take('eve', 1_000_000, NOW)).toBe(BURST_BYTES)
  })

  test('allows a burst of one second where that is more', () => {
    const budget = new OutputBudget(1_000_000)
    expect(budget.take('bob', 2_000_000, NOW)).toBe(1_000_000)
  })
})

describe('(threat T50) a limit on output', () => {
  let sandboxes: RealSandboxes
  let control: RunningControl
  let owner: ApiClient
  beforeAll(async () => {
    sandboxes = new RealSandboxes()
    // So little that nothing is refilled during the test.
    const limits = { outputBytesPerSecond: 1 }
    control = await startControl({ runner: sandboxes, config: { limits }, bindings: { JWT_SECRET } })
    owner = new ApiClient(control, TOKEN)
    await owner.post('/api/sandboxes', { name: 'dev' })
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  const exec = (caller: ApiClient, sandbox: string) =>
    caller.post(`/api/sandboxes/${sandbox}/exec`, {
      cmd: 'sh',
      args: ['-c', 'head -c 100000 /dev/zero | tr "\\0" a; printf END'],
    })

  test('applies to `exec`: its last response is sent whole, then requests are refused for a while', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => exec(owner, 'dev')))
    const texts = all.filter(({ status }) => status === 200).map((reply) => textIn(reply, 'output'))
    const bytes = texts.reduce((sum, text) => sum + text.length, 0)
    expect(bytes).toBeGreaterThan(0)
    expect(bytes).toBeLessThan(BURST_BYTES + 1_000)
    expect(texts.find((text) => text !== '')).toEndWith('aEND')
    for (const { status, body } of all) if (status === 200) expect(body).toMatchObject({ isCut: true })
    const refused = await exec(owner, 'dev')
    expect(codeIn(refused)).toBe('429 rate_limited')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(500)
  })

  test('applies to output read by offset, which continues where it was truncated', async () => {
    const bob = await ApiClient.named(control, 'bob')
    const started = await owner.post('/api/sandboxes/dev/sessions', {
      cmd: 'sh',
      args: ['-c', 'head -c 100000 /dev/zero; exec cat'],
    })
    const [session, sandbox] = [textIn(started, 'id'), textIn(started, 'sandbox')]
    const grant = await owner.post('/api/grants', { session, role: 'viewer' })
    await bob.post('/api/grants/redeem', { link: linkIn(grant) })
    const path = `/api/sandboxes/${sandbox}/sessions/${session}/output`
    let read = 0
    let reply = await bob.get(`${path}?from=0`)
    for (; reply.status === 200; reply = await bob.get(`${path}?from=${read}`)) {
      const next = Number(reply.headers.get('sandwire-next'))
      expect(next - read).toBe(String(reply.body).length)
      read = next
    }
    expect(codeIn(reply)).toBe('429 rate_limited')
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(500)
    expect(read).toBeGreaterThan(0)
    expect(read).toBeLessThan(BURST_BYTES + 1_000)
  })
})
