import { expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type RunningHost, startHost } from './support/control.ts'
import { workerdOf } from './support/deployment.ts'

/** Headers by which proxies, and the development server of workerd, say who is behind them. */
const LIES = [
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

test('(threat T50) the audit has the address that a connection comes from, whatever its headers say', async () => {
  await using host = await startHost()
  const headers = {
    'content-type': 'application/json',
    ...Object.fromEntries(LIES.map((name) => [name, '203.0.113.66'])),
    'mf-cf-blob': BLOB,
    'cf-blob': BLOB,
    cf: BLOB,
  }
  const body = JSON.stringify({ name: 'dev', start: false })
  expect((await host.fetch('/api/sandboxes', { method: 'POST', headers, body })).status).toBe(201)
  const rows = await eventually(
    async () => {
      const { rows: told } = await (await host.fetch('/api/audit')).json()
      return told.length > 0 && told
    },
    { what: 'the row to arrive' },
  )
  expect(rows).toMatchObject([{ action: 'sandbox.create', actor: 'local', address: '127.0.0.1' }])
})

const JSON_BODY = { 'content-type': 'application/json' }
const ROUNDS = 6
const AT_ONCE = 8
const WAIT = { timeoutMs: 30_000 }

/** Changes something; the id of the request when it was answered, undefined when workerd died under it. */
async function change(host: RunningHost, value: string): Promise<string | undefined> {
  const body = JSON.stringify({ env: { A: value } })
  try {
    const response = await host.fetch('/api/sandboxes/dev/env', { method: 'PUT', headers: JSON_BODY, body })
    return response.ok ? (response.headers.get('x-request-id') ?? undefined) : undefined
  } catch {
    // Cut off: whether it was done is not known, so it may have a row or none.
    return undefined
  }
}

test('what was answered is in the audit once, although workerd is killed with every answer', async () => {
  await using host = await startHost()
  const body = JSON.stringify({ name: 'dev', start: false })
  expect((await host.fetch('/api/sandboxes', { method: 'POST', headers: JSON_BODY, body })).status).toBe(201)
  const answered: string[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const workerd = await eventually(() => workerdOf(host), { what: 'workerd', ...WAIT })
    const changes = Array.from({ length: AT_ONCE }, (_, index) => change(host, `${round}.${index}`))
    // In the middle of it: with the first answer, when its row is written and may not have been told.
    answered.push(...[await Promise.race(changes)].filter((id) => id !== undefined))
    process.kill(workerd, 'SIGKILL')
    for (const id of await Promise.all(changes)) if (id !== undefined) answered.push(id)
    const isBack = async (): Promise<boolean> => (await host.fetch('/health')).ok
    await eventually(isBack, { what: 'control to be back', ...WAIT })
  }
  // Whatever comes next is told together with what waits.
  const last = await change(host, 'last')
  const rows = await eventually(
    async () => {
      const { rows: told } = await (await host.fetch('/api/audit?limit=1000&action=sandbox.env')).json()
      const ids: string[] = told.map(({ requestId }: { requestId: string }) => requestId)
      return last !== undefined && ids.includes(last) && ids
    },
    { what: 'the last row to arrive', ...WAIT },
  )
  expect(new Set(rows).size).toBe(rows.length)
  expect(new Set(answered).difference(new Set(rows))).toEqual(new Set())
  expect(answered.length).toBeGreaterThan(0)
}, 120_000)
