import { expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type RunningHost, startHost } from './support/control.ts'
import { workerdOf } from './support/deployment.ts'

/** Headers in which proxies and workerd's development server pass on a client address. */
const FORGED_HEADERS = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'true-client-ip',
  'x-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
]
const BLOB = JSON.stringify({ clientIp: '203.0.113.66:1' })

test("(threat T50) the audit log records the connection's address and ignores forwarding headers", async () => {
  await using host = await startHost()
  const headers = {
    'content-type': 'application/json',
    ...Object.fromEntries(FORGED_HEADERS.map((name) => [name, '203.0.113.66'])),
    'mf-cf-blob': BLOB,
    'cf-blob': BLOB,
    cf: BLOB,
  }
  const body = JSON.stringify({ name: 'dev', start: false })
  expect((await host.fetch('/api/sandboxes', { method: 'POST', headers, body })).status).toBe(201)
  const rows = await eventually(
    async () => {
      const { rows: audited } = await (await host.fetch('/api/audit')).json()
      return audited.length > 0 && audited
    },
    { what: 'the audit event' },
  )
  expect(rows).toMatchObject([{ action: 'sandbox.create', actor: 'local', address: '127.0.0.1' }])
})

const JSON_BODY = { 'content-type': 'application/json' }
const ROUNDS = 6
const AT_ONCE = 8

/** Changes the environment. Returns the request id, or undefined when workerd was killed before it responded. */
async function change(host: RunningHost, value: string): Promise<string | undefined> {
  const body = JSON.stringify({ env: { A: value } })
  try {
    const response = await host.fetch('/api/sandboxes/dev/env', { method: 'PUT', headers: JSON_BODY, body })
    return response.ok ? (response.headers.get('x-request-id') ?? undefined) : undefined
  } catch {
    // Disconnected: the change may or may not have been made and audited.
    return undefined
  }
}

test('audits every answered request exactly once while workerd is killed repeatedly', async () => {
  await using host = await startHost()
  const body = JSON.stringify({ name: 'dev', start: false })
  expect((await host.fetch('/api/sandboxes', { method: 'POST', headers: JSON_BODY, body })).status).toBe(201)
  const answered: string[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const workerd = await eventually(() => workerdOf(host), { what: 'workerd' })
    const changes = Array.from({ length: AT_ONCE }, (_, index) => change(host, `${round}.${index}`))
    // Kills workerd at the first response, when the event is stored but perhaps not yet delivered.
    answered.push(...[await Promise.race(changes)].filter((id) => id !== undefined))
    process.kill(workerd, 'SIGKILL')
    for (const id of await Promise.all(changes)) if (id !== undefined) answered.push(id)
    const isBack = async (): Promise<boolean> => (await host.fetch('/health')).ok
    await eventually(isBack, { what: 'control to be back' })
  }
  // The next event is delivered together with those that wait.
  const last = await change(host, 'last')
  const rows = await eventually(
    async () => {
      const { rows: audited } = await (await host.fetch('/api/audit?limit=1000&action=sandbox.env')).json()
      const ids: string[] = audited.map(({ requestId }: { requestId: string }) => requestId)
      return last !== undefined && ids.includes(last) && ids
    },
    { what: 'the last audit event' },
  )
  expect(new Set(rows).size).toBe(rows.length)
  expect(new Set(answered).difference(new Set(rows))).toEqual(new Set())
  expect(answered.length).toBeGreaterThan(0)
})
