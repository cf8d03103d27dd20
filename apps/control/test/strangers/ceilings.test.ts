import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from '../support/control.ts'
import { type ApiResponse, codeIn, JWT_SECRET, ApiClient, textIn, tokenOf } from '../support/api-client.ts'
import { FakeSandboxes } from '../support/fake-sandboxes.ts'
import { fieldOf } from '../support/json.ts'

const GiB = 1024 ** 3
const MACHINE = {
  memoryBytes: 16 * GiB,
  milliCpus: 4_000,
  pids: 32_768,
  diskBytes: 200 * GiB,
  diskOvercommit: 2,
}

const sandboxes = new FakeSandboxes()

/** Control of a machine that several accounts use. */
async function start(ceilings: object): Promise<RunningControl> {
  const config = { machine: MACHINE, ceilings }
  const control = await startControl({ runner: sandboxes, config, bindings: { JWT_SECRET } })
  control.host.isolation = 'bubblewrap'
  return control
}

async function clientOf(control: RunningControl, account: string): Promise<ApiClient> {
  return new ApiClient(control, await tokenOf(account))
}

function ceilingIn(response: ApiResponse): unknown {
  return fieldOf(fieldOf(response.body, 'error'), 'ceiling')
}

/** Creates and starts sandboxes until one is refused; returns how many run. */
async function fill(client: ApiClient, most: number): Promise<{ running: number; refusal?: ApiResponse }> {
  for (let running = 0; running < most; running++) {
    const response = await client.post('/api/sandboxes', {})
    if (response.status !== 201) return { running, refusal: response }
  }
  return { running: most }
}

describe('on a machine that accounts share', () => {
  let control: RunningControl
  beforeAll(async () => {
    control = await start({})
  })
  afterAll(() => control[Symbol.asyncDispose]())

  test.each([
    ['limits.memoryBytes', 'sandbox.memoryBytes', { limits: { memoryBytes: 1024 ** 4 } }],
    ['limits.milliCpus', 'sandbox.milliCpus', { limits: { milliCpus: 1_000_000 } }],
    ['limits.pids', 'sandbox.pids', { limits: { pids: 100_000 } }],
    ['limits.diskBytes', 'sandbox.diskBytes', { limits: { diskBytes: 1024 ** 4 } }],
    ['network.policy', 'sandbox.networks', { network: { policy: 'open' } }],
    ['sleepAfterSeconds', 'sandbox.idleSeconds', { sleepAfterSeconds: null }],
  ])('a sandbox cannot have any %s', async (field, ceiling, body) => {
    const client = await clientOf(control, 'greedy')
    const response = await client.post('/api/sandboxes', body)
    expect(codeIn(response)).toBe('429 ceiling_exceeded')
    expect(fieldOf(response.body, 'error')).toMatchObject({ ceiling, field })
  })

  test('a refusal says what was asked and what the limit is', async () => {
    const client = await clientOf(control, 'greedy')
    const response = await client.post('/api/sandboxes', { limits: { memoryBytes: 1024 ** 4 } })
    expect(fieldOf(response.body, 'error')).toMatchObject({
      message: 'Cannot create the sandbox: a sandbox may have at most 8 GiB of memory (requested: 1 TiB)',
      limit: 8 * GiB,
      asked: 1024 ** 4,
    })
    const list = await client.get('/api/sandboxes')
    expect(list.body).toEqual({ sandboxes: [] })
  })

  test('usage shows the use of the account and its ceilings', async () => {
    const client = await clientOf(control, 'user')
    await client.post('/api/sandboxes', { name: 'one' })
    await client.post('/api/sandboxes', { name: 'two', start: false, limits: { diskBytes: 3 * GiB } })
    const { body } = await client.get('/api/account/usage')
    expect(body).toMatchObject({
      account: {
        sandboxes: { used: 2, limit: 100 },
        running: { used: 1, limit: 64 },
        memoryBytes: { used: GiB, limit: 8 * GiB },
        milliCpus: { used: 1_000, limit: 32_000 },
        pids: { used: 512, limit: 12_288 },
        diskBytes: { used: 5 * GiB, limit: 100 * GiB },
        sessions: { used: 0, limit: 2_000 },
      },
      sandbox: { memoryBytes: 8 * GiB, networks: ['none', 'allowlist'], idleSeconds: 86_400 },
      defaults: { memoryBytes: GiB, network: 'none', idleSeconds: 600 },
    })
    await client.delete('/api/sandboxes/one')
    await client.delete('/api/sandboxes/two')
    expect(fieldOf((await client.get('/api/account/usage')).body, 'account')).toMatchObject({
      sandboxes: { used: 0 },
      memoryBytes: { used: 0 },
      diskBytes: { used: 0 },
    })
  })
})

describe('one account', () => {
  test('cannot take every slot: others still start sandboxes', async () => {
    await using control = await start({ machine: { running: 10 } })
    const greedy = await clientOf(control, 'greedy')
    const { running, refusal } = await fill(greedy, 20)
    expect(running).toBe(5)
    expect(refusal === undefined ? undefined : codeIn(refusal)).toBe('429 ceiling_exceeded')
    expect(fieldOf(refusal?.body, 'error')).toMatchObject({
      ceiling: 'machine.running',
      message: expect.stringContaining('reserved for other accounts') as string,
    })
    const others = await Promise.all(['b', 'c', 'd'].map((name) => clientOf(control, name)))
    for (const other of others) expect((await fill(other, 1)).running).toBe(1)
  })

  test('cannot use up memory and disk alone, whatever is promised', async () => {
    await using control = await start({ overcommit: { memory: 4 } })
    const greedy = await clientOf(control, 'greedy')
    const whole = { limits: { memoryBytes: MACHINE.memoryBytes / 2, diskBytes: GiB } }
    expect((await greedy.post('/api/sandboxes', whole)).status).toBe(201)
    expect(ceilingIn(await greedy.post('/api/sandboxes', whole))).toBe('account.memoryBytes')
    const disk = { start: false, limits: { diskBytes: MACHINE.diskBytes / 4 } }
    expect((await greedy.post('/api/sandboxes', disk)).status).toBe(201)
    expect(ceilingIn(await greedy.post('/api/sandboxes', disk))).toBe('account.diskBytes')
  })

  test('cannot exceed its ceilings with concurrent requests', async () => {
    const ceilings = { account: { sandboxes: 6, running: 2, diskBytes: 9 * GiB } }
    await using control = await start(ceilings)
    const client = await clientOf(control, 'racer')
    const created = await Promise.all(
      Array.from({ length: 12 }, () => client.post('/api/sandboxes', { start: false })),
    )
    const ids = created.filter(({ status }) => status === 201).map((response) => textIn(response, 'id'))
    // Each has 2 GiB of disk.
    expect(ids.length).toBe(4)
    const refused = created.filter(({ status }) => status !== 201)
    expect(new Set(refused.map(ceilingIn))).toEqual(new Set(['account.diskBytes']))
    const started = await Promise.all(ids.map((id) => client.request('POST', `/api/sandboxes/${id}/start`)))
    expect(started.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 429, 429])
    const view = await client.get('/api/sandboxes')
    expect(JSON.stringify(view.body).match(/"state":"stopped"/g)?.length).toBe(2)
  })

  test('gets a slot again when a sandbox stops', async () => {
    await using control = await start({ account: { running: 1 } })
    const client = await clientOf(control, 'one')
    await client.post('/api/sandboxes', { name: 'a' })
    const refused = await client.post('/api/sandboxes', { name: 'b' })
    expect(ceilingIn(refused)).toBe('account.running')
    expect(fieldOf(fieldOf(refused.body, 'error'), 'used')).toBe(1)
    // Nothing was created.
    expect((await client.get('/api/sandboxes/b')).status).toBe(404)
    await client.post('/api/sandboxes', { name: 'b', start: false })
    expect(ceilingIn(await client.request('POST', '/api/sandboxes/b/start'))).toBe('account.running')
    expect((await client.get('/api/sandboxes/b')).body).toMatchObject({ state: 'stopped' })
    await client.request('POST', '/api/sandboxes/a/stop')
    expect((await client.request('POST', '/api/sandboxes/b/start')).status).toBe(200)
  })

  test('has a limited number of sessions', async () => {
    await using control = await start({ account: { sessions: 0 } })
    const client = await clientOf(control, 'one')
    await client.post('/api/sandboxes', { name: 'a' })
    const response = await client.post('/api/sandboxes/a/sessions', { cmd: 'cat' })
    expect(codeIn(response)).toBe('429 ceiling_exceeded')
    expect(ceilingIn(response)).toBe('account.sessions')
  })
})

describe('a ceiling that was lowered', () => {
  test('leaves earlier sandboxes usable, within the new ceilings', async () => {
    const wide = { sandbox: { networks: ['none', 'open'], memoryBytes: 8 * GiB } }
    await using control = await start(wide)
    const client = await clientOf(control, 'early')
    const body = { name: 'old', network: { policy: 'open' }, limits: { memoryBytes: 4 * GiB } }
    expect((await client.post('/api/sandboxes', body)).status).toBe(201)
    await client.request('POST', '/api/sandboxes/old/stop')
    const lowered = { sandbox: { memoryBytes: 2 * GiB, diskBytes: GiB }, account: { sandboxes: 0 } }
    await control.restart({ machine: MACHINE, ceilings: lowered })
    expect((await client.get('/api/sandboxes/old')).status).toBe(200)
    const started = await client.request('POST', '/api/sandboxes/old/start')
    expect(started.status).toBe(200)
    expect(started.body).toMatchObject({
      network: { policy: 'none' },
      limits: { memoryBytes: 2 * GiB, diskBytes: 2 * GiB },
    })
    const spec = [...control.host.specs.values()].at(-1)
    expect(spec).toMatchObject({ network: { policy: 'none' }, limits: { memoryBytes: 2 * GiB } })
    expect((await client.request('POST', '/api/sandboxes/old/stop')).status).toBe(200)
    expect((await client.delete('/api/sandboxes/old')).status).toBe(204)
  })
})

describe('metrics', () => {
  test('show the use of the machine against its ceilings', async () => {
    await using control = await start({ machine: { running: 10, sandboxes: 20 } })
    await fill(await clientOf(control, 'a'), 2)
    await fill(await clientOf(control, 'b'), 1)
    expect(await control.metric('sandwire_usage{resource="running"}')).toBe(3)
    expect(await control.metric('sandwire_ceiling{resource="running"}')).toBe(10)
    expect(await control.metric('sandwire_usage{resource="memoryBytes"}')).toBe(3 * GiB)
    expect(await control.metric('sandwire_usage_accounts')).toBe(2)
    await (await clientOf(control, 'a')).post('/api/sandboxes', { network: { policy: 'open' } })
    expect(await control.metric('sandwire_ceiling_refusals_total{ceiling="sandbox.networks"}')).toBe(1)
    const b = await clientOf(control, 'b')
    const { sandboxes: list } = (await b.get('/api/sandboxes')).body as { sandboxes: { id: string }[] }
    for (const { id } of list) await b.delete(`/api/sandboxes/${id}`)
    await eventually(async () => (await control.metric('sandwire_usage_accounts')) === 1, {
      what: 'an account without sandboxes',
    })
  })
})

describe('the owner of a machine', () => {
  test('may use all of it, and no more than it has', async () => {
    await using control = await startControl({
      runner: sandboxes,
      config: { machine: MACHINE, ceilings: { machine: { running: 3 } } },
    })
    control.host.isolation = 'bubblewrap'
    const owner = new ApiClient(control, TOKEN)
    const all = { memoryBytes: MACHINE.memoryBytes, milliCpus: MACHINE.milliCpus }
    const whole = { limits: all, network: { policy: 'open' }, sleepAfterSeconds: null }
    expect((await owner.post('/api/sandboxes', whole)).status).toBe(201)
    const more = { limits: { memoryBytes: MACHINE.memoryBytes + 1 } }
    expect(ceilingIn(await owner.post('/api/sandboxes', more))).toBe('sandbox.memoryBytes')
    const { running, refusal } = await fill(owner, 5)
    expect(running).toBe(2)
    expect(refusal === undefined ? undefined : ceilingIn(refusal)).toBe('machine.running')
  })
})
