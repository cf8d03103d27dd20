import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SandwireError } from '@sandwire/protocol'
import { eventually } from '@sandwire/testing'
import { AttachBudget } from '../../src/account/store.ts'
import { AccountStore } from '../../src/account/store.ts'
import { decodeConfig } from '../../src/config.ts'
import { networkOf } from '../../src/http/client-address.ts'
import { AddressLimit } from '../../src/http/rate-limits.ts'
import { AttachLimits } from '../../src/http/rate-limits.ts'
import { fromAddress, SPOOFS } from '../support/addresses.ts'
import { sqlOf } from '../support/bun-sql.ts'
import { type RunningControl, startControl, TOKEN } from '../support/control.ts'
import { upgrade } from '../support/handshake.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient } from '../support/api-client.ts'
import { FakeSandboxes } from '../support/fake-sandboxes.ts'
import { fieldOf } from '../support/json.ts'

const NOW = 1_800_000_000_000

function refusedBy(run: () => void): Pick<SandwireError, 'code' | 'retryAfterMs'> | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    return error as SandwireError
  }
}

describe('the limit per address', () => {
  const limit = (exemptsLoopback = false) => new AddressLimit({ perMinute: 60, exemptsLoopback })
  const taken = (of: AddressLimit, addresses: readonly string[]): number =>
    addresses.filter((address) => of.refusal(address, NOW) === undefined).length

  test('allows a burst of one minute, then returns how long to wait', () => {
    const one = limit()
    expect(
      taken(
        one,
        Array.from({ length: 100 }, () => '192.0.2.1'),
      ),
    ).toBe(60)
    expect(one.refusal('192.0.2.1', NOW)).toMatchObject({
      code: 'too_many_from_address',
      retryAfterMs: 1_000,
    })
    expect(one.refusal('192.0.2.2', NOW)).toBeUndefined()
    expect(one.refusal('192.0.2.1', NOW + 1_000)).toBeUndefined()
  })

  test('(threat T50) counts all addresses of an IPv6 host as one, in every notation', () => {
    const host = Array.from({ length: 100 }, (_, index) => `2001:db8:1:2::${index.toString(16)}`)
    expect(taken(limit(), host)).toBe(60)
    const spellings = ['2001:db8:1:2::1', '2001:0db8:0001:0002:0000:0000:0000:0001', '2001:DB8:1:2:0:0:0:1']
    expect(new Set(spellings.map(networkOf)).size).toBe(1)
    expect(networkOf('2001:db8:1:3::1')).not.toBe(networkOf('2001:db8:1:2::1'))
    expect(networkOf('::ffff:192.0.2.1')).toBe(networkOf('192.0.2.1'))
  })

  test('exempts loopback only in local mode', () => {
    const loopback = Array.from({ length: 100 }, () => [
      '127.0.0.1',
      '::1',
      '127.9.9.9',
      '::ffff:127.0.0.1',
    ]).flat()
    expect(taken(limit(true), loopback)).toBe(400)
    expect(taken(limit(false), loopback)).toBeLessThan(400)
    expect(
      taken(
        limit(true),
        Array.from({ length: 100 }, () => '127.evil.example'),
      ),
    ).toBe(60)
  })

  test('counts unknown addresses as one', () => {
    expect(
      taken(
        limit(),
        Array.from({ length: 100 }, () => ''),
      ),
    ).toBe(60)
  })

  test('is counted by the platform where available', async () => {
    const keys: string[] = []
    const limits = new AttachLimits({
      perAddress: { perMinute: 60, exemptsLoopback: false },
      rateLimit: { limit: async ({ key }) => ({ success: keys.push(key) < 2 }) },
      takeOfAccount: async () => ({ ok: true, value: undefined }),
      nowMs: () => NOW,
    })
    const call = { identity: 'ada', address: '2001:db8::1' }
    await limits.admit(call)
    expect(await limits.admit(call).catch((error: unknown) => error)).toMatchObject({
      code: 'too_many_from_address',
      retryAfterMs: 60_000,
    })
    expect(new Set(keys)).toEqual(new Set([networkOf('2001:db8::1')]))
  })
})

describe('the limits of an attach', () => {
  const address = '192.0.2.1'
  const tooMany = { ok: false, code: 'too_many_attaches', message: 'Too many' } as const
  const codeOf = (admitted: Promise<void>): Promise<unknown> =>
    admitted.then(
      () => 'ok',
      (error: unknown) => fieldOf(error, 'code'),
    )

  test('(threat T50) a refused account does not use up the limit of a shared address', async () => {
    const limits = new AttachLimits({
      perAddress: { perMinute: 60, exemptsLoopback: false },
      rateLimit: undefined,
      takeOfAccount: async (account) => (account === 'busy' ? tooMany : { ok: true, value: undefined }),
      nowMs: () => NOW,
    })
    for (let time = 0; time < 100; time += 1)
      expect(await codeOf(limits.admit({ identity: 'busy', address }))).toBe('too_many_attaches')
    expect(await codeOf(limits.admit({ identity: 'colleague', address }))).toBe('ok')
  })

  test('a refused address does not use up the limit of the account', async () => {
    let taken = 0
    const limits = new AttachLimits({
      perAddress: { perMinute: 60, exemptsLoopback: false },
      rateLimit: undefined,
      takeOfAccount: async () => ({ ok: true, value: void (taken += 1) }),
      nowMs: () => NOW,
    })
    for (let time = 0; time < 100; time += 1) await codeOf(limits.admit({ identity: 'ada', address }))
    expect(await codeOf(limits.admit({ identity: 'ada', address }))).toBe('too_many_from_address')
    expect(taken).toBe(60)
  })

  test('the platform counts only requests within the limit of the account', async () => {
    let counted = 0
    const limits = new AttachLimits({
      perAddress: { perMinute: 60, exemptsLoopback: false },
      rateLimit: { limit: async () => ({ success: (counted += 1) > 0 }) },
      takeOfAccount: async () => tooMany,
      nowMs: () => NOW,
    })
    expect(await codeOf(limits.admit({ identity: 'busy', address }))).toBe('too_many_attaches')
    expect(counted).toBe(0)
  })
})

describe('the limit per account', () => {
  const open = () => {
    const sql = sqlOf(new Database(':memory:'))
    // Creates the tables.
    new AccountStore(sql)
    return { sql, budget: new AttachBudget(sql) }
  }

  test('allows a burst of one minute of attaches, then one at a time', () => {
    const { budget } = open()
    for (let index = 0; index < 60; index += 1) budget.take(60, NOW)
    expect(refusedBy(() => budget.take(60, NOW))).toMatchObject({
      code: 'too_many_attaches',
      retryAfterMs: 1_000,
    })
    expect(refusedBy(() => budget.take(60, NOW + 1_000))).toBeUndefined()
    expect(refusedBy(() => budget.take(60, NOW + 1_000))).toBeDefined()
    // A clock that was set back refills nothing.
    expect(refusedBy(() => budget.take(60, NOW - 60_000))).toBeDefined()
    // Nor does it delay the next refill by that time.
    expect(refusedBy(() => budget.take(60, NOW - 59_000))).toBeUndefined()
  })

  test('(threat T50) is not refilled by an eviction of the account’s object', () => {
    const { sql, budget } = open()
    for (let index = 0; index < 60; index += 1) budget.take(60, NOW)
    expect(refusedBy(() => new AttachBudget(sql).take(60, NOW))).toBeDefined()
  })

  test('is off when it is zero', () => {
    const { budget } = open()
    for (let index = 0; index < 1_000; index += 1) budget.take(0, NOW)
  })
})

test('limits have defaults per mode', () => {
  const config = {
    publicOrigins: [],
    hosts: ['h'],
    sleepAfterMs: 1e3,
    alarmMs: 50,
    maxSandboxes: 1,
    provider: 'host',
    workspaceMode: 'sandboxes',
  }
  const { limits: local } = decodeConfig(JSON.stringify({ ...config, mode: 'local' }))
  const { limits: shared } = decodeConfig(JSON.stringify({ ...config, mode: 'open' }))
  expect(local.attachesPerMinutePerUser).toBe(30_000)
  expect(shared).toEqual({
    attachesPerMinutePerAddress: 300,
    attachesPerMinutePerUser: 600,
    workspaceCostPerMinutePerUser: 1_200,
    strangersPerMinutePerAddress: 300,
    sessionsPerSandbox: 1_000,
    outputBytesPerSecond: 0,
  })
  const limits = { attachesPerMinutePerUser: -1 }
  expect(() => decodeConfig(JSON.stringify({ ...config, mode: 'open', limits }))).toThrow()
})

describe('control', () => {
  let sandboxes: FakeSandboxes
  let control: RunningControl
  beforeAll(async () => {
    sandboxes = new FakeSandboxes()
    const limits = {
      attachesPerMinutePerAddress: 20,
      attachesPerMinutePerUser: 30,
      strangersPerMinutePerAddress: 10,
      sessionsPerSandbox: 5,
      outputBytesPerSecond: 7e4,
    }
    // In local mode, where requests from other machines are limited too.
    control = await startControl({ runner: sandboxes, config: { limits }, bindings: { JWT_SECRET } })
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  /** The outcome of an attach: open, or the refusal over HTTP. Plain clients get no error frame. */
  async function attach(caller: ApiClient, headers: Readonly<Record<string, string>>) {
    const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=cat', {
      headers: [...caller.headers, ...Object.entries(headers)],
    })
    if (handshake.kind === 'open') handshake.socket.reset()
    if (handshake.kind !== 'refused') return { outcome: handshake.kind, retryAfter: 0 }
    const code: unknown = fieldOf(fieldOf(JSON.parse(handshake.body), 'error'), 'code')
    const { headers: answered } = handshake
    return { outcome: String(code), retryAfter: Number(answered.get('retry-after') ?? 'NaN') }
  }

  /** The number of occurrences per outcome. */
  function tally(outcomes: readonly { outcome: string }[]): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { outcome } of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
    return counts
  }

  test('(threat T50) refuses a flood of attaches from one address, whatever its headers say', async () => {
    const accounts = await Promise.all(
      Array.from({ length: 10 }, (_, index) => ApiClient.named(control, `p${index}`)),
    )
    const flood = Array.from({ length: 100 }, (_, index) => {
      const lie = `203.0.113.${index}`
      const lies = Object.fromEntries(SPOOFS.map((name) => [name, name === 'forwarded' ? `for=${lie}` : lie]))
      const caller = accounts[index % accounts.length]
      if (caller === undefined) throw new Error('No account')
      return attach(caller, { ...lies, ...fromAddress('192.0.2.1') })
    })
    const outcomes = await Promise.all(flood)
    const { open = 0, too_many_from_address: refused = 0 } = tally(outcomes)
    expect(open + refused).toBe(100)
    // Twenty, plus the refill during the flood.
    expect(open).toBeGreaterThanOrEqual(20)
    expect(open).toBeLessThan(40)
    for (const { outcome, retryAfter } of outcomes)
      if (outcome !== 'open') expect([1, 2, 3]).toContain(retryAfter)
    // One is refilled every three seconds, as retry-after says.
    expect(Math.max(...outcomes.map(({ retryAfter }) => retryAfter))).toBeGreaterThan(1)
  })

  test('(threat T50) refuses a flood of one account from many addresses', async () => {
    const caller = await ApiClient.named(control, 'many')
    const flood = Array.from({ length: 100 }, (_, index) =>
      attach(caller, fromAddress(`198.51.100.${index}`)),
    )
    const outcomes = await Promise.all(flood)
    const { open = 0, too_many_attaches: refused = 0 } = tally(outcomes)
    expect(open + refused).toBe(100)
    expect(open).toBeGreaterThanOrEqual(30)
    expect(open).toBeLessThan(50)
    for (const { outcome, retryAfter } of outcomes)
      if (outcome !== 'open') expect([1, 2]).toContain(retryAfter)
    // Other clients are not affected.
    expect((await attach(new ApiClient(control, TOKEN), fromAddress('198.51.100.200'))).outcome).toBe('open')
  })

  test('returns how long to wait in the frame where there is no header', async () => {
    const caller = await ApiClient.named(control, 'framed')
    const headers = [...caller.headers, ...Object.entries(fromAddress('192.0.2.44'))]
    const frames: string[] = []
    for (let index = 0; index < 25; index += 1) {
      const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=cat', {
        headers,
        subprotocols: ['sandwire.v1'],
      })
      if (handshake.kind !== 'open') throw new Error('Expected an error frame')
      frames.push(new TextDecoder().decode((await handshake.socket.nextFrame()).payload))
      handshake.socket.reset()
    }
    const refusal: unknown = JSON.parse(
      frames.find((text) => text.includes('too_many_from_address')) ?? 'null',
    )
    expect(refusal).toMatchObject({ type: 'error', code: 'too_many_from_address', fatal: true })
    expect(String(fieldOf(refusal, 'message'))).toMatch(/: try again in \d+ s$/)
  })

  test('(threat T50) limits unauthenticated requests per address, without affecting others', async () => {
    const anonymous = new ApiClient(control, undefined)
    const ask = async (index: number): Promise<string> => {
      const lies = Object.fromEntries(SPOOFS.map((name) => [name, `203.0.113.${index}`]))
      const response = await anonymous.request('GET', '/api/sandboxes', undefined, {
        ...lies,
        ...fromAddress('192.0.2.9'),
      })
      if (response.status === 429) expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      return codeIn(response)
    }
    const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => ask(index)))
    expect(new Set(answers)).toEqual(new Set(['401 unauthorized', '429 too_many_from_address']))
    expect(answers.filter((answer) => answer.startsWith('401')).length).toBeLessThan(20)
    const other = await anonymous.request('GET', '/api/sandboxes', undefined, fromAddress('192.0.2.10'))
    expect(codeIn(other)).toBe('401 unauthorized')
    const owner = new ApiClient(control, TOKEN)
    expect((await owner.request('GET', '/api/sandboxes', undefined, fromAddress('192.0.2.9'))).status).toBe(
      200,
    )
  })

  test('(threat T50) accepts valid tokens from an address that sent too many invalid ones', async () => {
    const from = fromAddress('192.0.2.60')
    const ask = async (caller: ApiClient): Promise<string> =>
      codeIn(await caller.request('GET', '/api/whoami', undefined, from))
    const known = await ApiClient.named(control, 'known')
    const fresh = await ApiClient.named(control, 'fresh')
    expect((await known.request('GET', '/api/whoami', undefined, from)).status).toBe(200)
    const bad = new ApiClient(control, `${known.bearer ?? ''}x`)
    const answers: string[] = []
    for (let index = 0; index < 15; index += 1) answers.push(await ask(bad))
    expect(new Set(answers)).toEqual(new Set(['401 unauthorized', '429 too_many_from_address']))
    // Behind a proxy that does not pass the client's address, all users have the same one.
    expect((await fresh.request('GET', '/api/whoami', undefined, from)).status).toBe(200)
    expect((await known.request('GET', '/api/whoami', undefined, from)).status).toBe(200)
  })

  test('(threat T50) limits pages and health checks per address, but not for valid credentials', async () => {
    const from = fromAddress('192.0.2.65')
    const anonymous = new ApiClient(control, undefined)
    const fresh = await ApiClient.named(control, 'fresh-page')
    for (const [path, limit] of [
      ['/healthz', 10],
      ['/readyz', 10],
      ['/page.css', 100],
    ] as const) {
      const answers = await Promise.all(
        Array.from({ length: limit + 15 }, () => anonymous.request('GET', path, undefined, from)),
      )
      expect(answers.map(({ status }) => status)).toContain(429)
      expect((await fresh.request('GET', path, undefined, from)).status).toBe(200)
      expect((await anonymous.request('GET', path, undefined, fromAddress('192.0.2.66'))).status).toBe(200)
    }
    // A sign-in from there is still possible.
    expect((await anonymous.request('GET', '/signin/start', undefined, from)).status).toBe(303)
  })

  test('refuses an account whose requests cost too much, long before as many small ones', async () => {
    const [eve, ada] = [await ApiClient.named(control, 'eve'), await ApiClient.named(control, 'ada')]
    const statuses = async (path: string, caller: ApiClient): Promise<ReadonlySet<number>> => {
      const flood = Array.from({ length: 250 }, () => caller.request('GET', path))
      return new Set((await Promise.all(flood)).map(({ status }) => status))
    }
    expect(await statuses('/api/whoami', ada)).toEqual(new Set([200]))
    expect(await statuses('/api/audit?limit=1000', eve)).toContain(429)
    expect(await statuses('/api/whoami', ada)).toEqual(new Set([200]))
  })

  test('(threat T50) a flood of unauthenticated requests does not prevent a sign-in', async () => {
    const anonymous = new ApiClient(control, undefined)
    const flood = Array.from({ length: 400 }, (_, index) =>
      anonymous.request('GET', '/api/sandboxes', undefined, fromAddress(`203.0.113.${index % 250}`)),
    )
    expect((await Promise.all(flood)).map(codeIn)).toContain('429 rate_limited')
    const more = Array.from({ length: 100 }, (_, index) =>
      anonymous.request('GET', '/api/sandboxes', undefined, fromAddress(`203.0.113.${index % 250}`)),
    )
    const started = await anonymous.request('GET', '/signin/start', undefined, fromAddress('203.0.113.1'))
    expect(started.status).toBe(303)
    const origin = { origin: control.origin }
    const code = 'd'.repeat(32)
    const signIn = await anonymous.request(
      'POST',
      '/api/signin',
      { code },
      { ...origin, ...fromAddress('203.0.113.2') },
    )
    expect(codeIn(signIn)).toBe('401 unauthorized')
    await Promise.all(more)
    // Sign-in has a limit of its own.
    const starts = await Promise.all(
      Array.from({ length: 40 }, () =>
        anonymous.request('GET', '/signin/start', undefined, fromAddress('192.0.2.70')),
      ),
    )
    expect(starts.map(({ status }) => status)).toContain(429)
  })

  test('(threat T50) a flood of unauthenticated requests does not prevent redeeming a share link', async () => {
    const owner = new ApiClient(control, TOKEN)
    const anonymous = new ApiClient(control, undefined)
    await owner.post('/api/sandboxes', { name: 'joined', start: false })
    const links = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const made = await owner.post('/api/grants', { sandbox: 'joined', role: 'viewer' })
        return linkIn(made)
      }),
    )
    // From many addresses, so that the limit of all unauthenticated requests applies.
    const ask = (index: number) =>
      anonymous.request('GET', '/api/sandboxes', undefined, fromAddress(`203.0.113.${index % 250}`))
    const flood = Array.from({ length: 400 }, (_, index) => ask(index))
    expect((await Promise.all(flood)).map(codeIn)).toContain('429 rate_limited')
    const more = Array.from({ length: 100 }, (_, index) => ask(index))
    const joined = links.map((link, index) =>
      anonymous.request('POST', '/api/grants/redeem', { link }, fromAddress(`192.0.2.${100 + index}`)),
    )
    expect((await Promise.all(joined)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    await Promise.all(more)
  })

  test('(threat T50) limits new guests per address', async () => {
    const anonymous = new ApiClient(control, undefined)
    const answers = await Promise.all(
      Array.from({ length: 400 }, () =>
        anonymous.request('POST', '/api/grants/redeem', { link: 'x' }, fromAddress('192.0.2.90')),
      ),
    )
    expect(answers.map(codeIn)).toContain('429 too_many_from_address')
  })

  test('logs rate limit refusals, up to a limit', async () => {
    const caller = await ApiClient.named(control, 'many')
    const refused = await eventually(
      async () => {
        const { body } = await caller.get('/api/audit?limit=1000')
        const rows = fieldOf(body, 'rows') as readonly { code: string | null; action: string }[]
        const found = rows.filter(({ code }) => code === 'too_many_attaches')
        return found.length > 0 && found
      },
      { what: 'a row of a refusal' },
    )
    expect(refused.length).toBeLessThanOrEqual(61)
    expect(await control.metric('sandwire_audit_dropped_total')).toBeGreaterThan(0)
    expect(new Set(refused.map(({ action }) => action))).toEqual(new Set(['session.start']))
  })

  test('passes the limits on sessions and output to sandboxes', () => {
    const [spec] = control.host.specs.values()
    expect(spec).toMatchObject({ maxSessions: 5, outputBytesPerSecond: 70_000 })
  })

  test('sends no retry-after where waiting does not help', async () => {
    const sandbox = await startControl({ runner: sandboxes, config: { maxSandboxes: 1 } })
    await using _ = sandbox
    const owner = new ApiClient(sandbox, TOKEN)
    await owner.post('/api/sandboxes', { name: 'one', start: false })
    const response = await owner.post('/api/sandboxes', { name: 'two', start: false })
    expect(codeIn(response)).toBe('429 too_many_sandboxes')
    expect(response.headers.get('retry-after')).toBe('60')
  })
})
