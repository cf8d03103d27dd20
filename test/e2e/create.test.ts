import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openFaultProxy, Random, rejectionOf } from '@sandwire/testing'
import { Attached, endSession } from './support/attached.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { readFileLines } from './support/lines.ts'
import { mintHex, WireClient } from './support/wire-client.ts'

let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd()
})
afterAll(() => sandboxd.stop())

const startsFile = () => join(sandboxd.workspace, `starts-${crypto.randomUUID()}`)

async function post(
  body: object,
): Promise<{ status: number; body: { id: string; error?: { code: string } } }> {
  const response = await sandboxd.fetch('/sessions', { method: 'POST', body: JSON.stringify(body) })
  return {
    status: response.status,
    body: (await response.json()) as { id: string; error?: { code: string } },
  }
}

describe('a create whose reply is lost', () => {
  test('[C1] starts the process exactly once, at whichever byte the connection breaks', async () => {
    const random = new Random(20)
    const file = startsFile()
    const runs = 30
    for (let run = 0; run < runs; run++) {
      await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
      // The upgrade response has about 150 bytes, welcome and ack another 400: disconnects fall before, within and after them.
      for (let cut = 0; cut < 1 + (run % 3); cut++) {
        proxy.disconnectAfterBytes('toClient', 1 + random.int(0, 700), run % 2 === 0 ? 'reset' : 'fin')
      }
      if (run % 5 === 0) proxy.disconnectAfterBytes('toTarget', 1 + random.int(0, 900), 'reset')
      const request = { cmd: 'sh', args: ['-c', `echo run${run} >>${file}; echo out; exit 3`] }
      await using client = new Attached(sandboxd, request, { port: proxy.port })
      expect(await client.exit).toMatchObject({ code: 3, outputEnd: 4 })
      expect(client.text).toBe('out\n')
    }
    const lines = await readFileLines(file)
    expect(lines).toEqual(Array.from({ length: runs }, (_, run) => `run${run}`))
  })

  test('[C1] returns the same session when POST is repeated', async () => {
    const file = startsFile()
    const body = { createId: mintHex(), cmd: 'sh', args: ['-c', `echo x >>${file}; cat`] }
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(body)))
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([
      ...Array.from({ length: 19 }, () => 200),
      201,
    ])
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1)
    await eventually(async () => (await readFileLines(file)).length === 1, { what: 'the process to start' })
    await using client = new Attached(sandboxd, { session: answers[0]?.body.id ?? '' })
    await client.send('hello\n')
    await client.waitFor('hello')
    expect(await readFileLines(file)).toHaveLength(1)
  })

  test('[C1] returns the same session over POST and attach', async () => {
    const file = startsFile()
    const createId = mintHex()
    const args = ['-c', `echo x >>${file}; cat`]
    const { body } = await post({ createId, cmd: 'sh', args })
    const query = new URLSearchParams([
      ['cmd', 'sh'],
      ...args.map((arg) => ['arg', arg]),
      ['createId', createId],
    ] as [string, string][])
    await using client = new WireClient(sandboxd, query.toString())
    await client.hello({ identity: mintHex() })
    expect(await client.next('welcome')).toMatchObject({ session: body.id })
    await eventually(async () => (await readFileLines(file)).length === 1, { what: 'the process to start' })
    await endSession(sandboxd, body.id)
    expect(await readFileLines(file)).toHaveLength(1)
  })
})

describe('a create id', () => {
  test.each([
    ['another command', { cmd: 'false' }],
    ['other arguments', { args: ['x'] }],
    ['another mode', { mode: 'pty' }],
    ['another keep', { keep: 5 }],
    ['another overflow', { overflow: 'trim' }],
  ])('[C2] conflicts when repeated with %s', async (_, change) => {
    const body = { createId: mintHex(), cmd: 'cat' }
    const first = await post(body)
    expect(first.status).toBe(201)
    const second = await post({ ...body, ...change })
    expect([second.status, second.body.error?.code]).toEqual([409, 'conflict'])
    await endSession(sandboxd, first.body.id)
  })

  test('[C3] never starts a second process after its session is gone', async () => {
    const file = startsFile()
    const body = { createId: mintHex(), cmd: 'sh', args: ['-c', `echo x >>${file}`], keep: 1 }
    const { body: created } = await post(body)
    await endSession(sandboxd, created.id)
    await eventually(async () => (await sandboxd.fetch(`/sessions/${created.id}`)).status === 410, {
      what: 'the session to be gone',
    })
    const again = await post(body)
    expect([again.status, again.body.error?.code]).toEqual([410, 'session_gone'])
    expect((await readFileLines(file)).length).toBeLessThanOrEqual(1)
  })

  test('[C10] of an ended session differs from its session id, which fails with session_gone', async () => {
    const createId = mintHex()
    const { body } = await post({ createId, cmd: 'true', keep: 1 })
    await endSession(sandboxd, body.id)
    await eventually(async () => (await sandboxd.fetch(`/sessions/${body.id}`)).status === 410, {
      what: 'the session to be gone',
    })
    const joined = new Attached(sandboxd, { session: body.id })
    expect(await rejectionOf(joined.exit)).toMatchObject({ code: 'session_gone' })
  })
})

test('the ids of 200 sessions are all different', async () => {
  const ids = new Set<string>()
  for (let batch = 0; batch < 20; batch++) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => post({ createId: mintHex(), cmd: 'true', keep: 1 })),
    )
    for (const { body } of answers) ids.add(body.id)
    await Promise.all(answers.map(({ body }) => endSession(sandboxd, body.id)))
  }
  expect(ids.size).toBe(200)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
})
