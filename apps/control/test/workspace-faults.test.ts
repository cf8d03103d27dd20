import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { eventually } from '@sandwire/testing'
import { OPEN_MS } from '../src/providers/breaker.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { RawSandbox } from './support/raw-sandbox.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { shorten } from './support/shorten.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const W = '/api/workspaces/dev'
const TIMEOUT_MS = 180_000

/** Shorter than in production, so that the test can wait for it. */
const hurry = shorten(['FILE_RESPONSE_MS', 'VERSION_MS'], 1_000)

async function codeOf(response: Response): Promise<string> {
  const { error } = Object(await response.json())
  return `${response.status} ${String(Object(error).code)}`
}

async function makeSandbox(control: RunningControl, name: string): Promise<void> {
  const made = await control.fetch('/api/sandboxes', { method: 'POST', json: { name } })
  expect(made.status).toBe(201)
}

/** The workspace state in `/readyz`. */
async function breakersOf(control: RunningControl): Promise<unknown> {
  const body = Object(await (await control.fetch('/readyz')).json())
  return Object(body.dependencies).workspaces
}

describe('a sandbox that does not respond to file requests', () => {
  let sandboxes: FakeSandboxes
  let control: RunningControl
  let requested = 0
  let answer: (request: Request) => Promise<Response> = async () => Response.json({})
  beforeAll(async () => {
    sandboxes = new FakeSandboxes()
    sandboxes.files = (request) => {
      requested += 1
      return answer(request)
    }
    control = await startControl({ runner: sandboxes, alter: hurry })
    await makeSandbox(control, 'dev')
    await makeSandbox(control, 'other')
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  test(
    'times out, opens the breaker, and closes it on a response, without delaying other sandboxes',
    async () => {
      const { promise: never, resolve } = Promise.withResolvers<Response>()
      answer = () => never
      const late = await Promise.all(Array.from({ length: 5 }, () => control.fetch(`${W}/stat?path=a`)))
      expect(await Promise.all(late.map(codeOf))).toEqual(Array(5).fill('504 timed_out'))
      const before = requested
      const refused = await control.fetch(`${W}/stat?path=a`)
      expect(refused.headers.get('retry-after')).toBe('1')
      expect(await codeOf(refused)).toBe('503 workspace_unavailable')
      expect(requested).toBe(before)
      expect(await breakersOf(control)).toEqual({ breaker: 'open', open: 1 })
      const compat = await control.fetch('/api/tree?sandbox=dev')
      expect([compat.status, Object.keys(Object(await compat.json()))]).toEqual([503, ['detail']])
      answer = async () => Response.json({})
      resolve(Response.json({}))
      expect((await control.fetch('/api/workspaces/other/stat?path=a')).status).toBe(200)
      await eventually(async () => (await control.fetch(`${W}/stat?path=a`)).status === 200, {
        what: 'a retry',
        timeoutMs: 5 * OPEN_MS,
      })
      expect(await breakersOf(control)).toEqual({ breaker: 'closed', open: 0 })
    },
    TIMEOUT_MS,
  )

  test('counts as unavailable when it says so, and not when one operation fails', async () => {
    answer = async () => Response.json({ error: { code: 'internal', message: 'RAW' } }, { status: 500 })
    for (let times = 0; times < 10; times += 1)
      expect(await codeOf(await control.fetch(`${W}/stat?path=a`))).toBe('502 sandbox_unreachable')
    expect(await breakersOf(control)).toEqual({ breaker: 'closed', open: 0 })
    answer = async () => new Response('RAW', { status: 503 })
    expect(await codeOf(await control.fetch(`${W}/stat?path=a`))).toBe('503 workspace_unavailable')
    answer = async () => Response.json({})
    expect((await control.fetch(`${W}/stat?path=a`)).status).toBe(200)
  })
})

describe('a sandbox whose connections break', () => {
  let sandbox: RawSandbox
  let control: RunningControl
  beforeAll(async () => {
    sandbox = new RawSandbox()
    control = await startControl({ runner: sandbox })
    await makeSandbox(control, 'dev')
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandbox[Symbol.asyncDispose]()
  })

  test('before a response gets reads again, and changes only once', async () => {
    sandbox.filesResponse = ''
    sandbox.fileRequests = 0
    expect(await codeOf(await control.fetch(`${W}/stat?path=a`))).toBe('503 workspace_unavailable')
    expect(sandbox.fileRequests).toBeGreaterThan(1)
    sandbox.fileRequests = 0
    const put = await control.fetch(`${W}/file?path=a`, { method: 'PUT', body: 'x' })
    expect(await codeOf(put)).toBe('503 workspace_unavailable')
    expect(sandbox.fileRequests).toBe(1)
    sandbox.fileRequests = 0
    const removed = await control.fetch(`${W}/file?path=a`, { method: 'DELETE' })
    expect(await codeOf(removed)).toBe('503 workspace_unavailable')
    expect(sandbox.fileRequests).toBe(1)
  })

  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n'
  test.each([
    ['with a length', `${head}Content-Length: 1000\r\n\r\nabc`],
    ['in chunks', `${head}sandwire-size: 1000\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`],
    [
      'in chunks that end too soon',
      `${head}sandwire-size: 1000\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    ],
  ])('in the middle of a file are never taken for its end (%s)', async (_, answer) => {
    sandbox.filesResponse = answer
    // Earlier requests may have opened its breaker.
    const response = await eventually(
      async () => {
        const tried = await control.fetch(`${W}/file?path=a`)
        return tried.status === 200 ? tried : undefined
      },
      { what: 'a response', timeoutMs: 5 * OPEN_MS },
    )
    expect(response.headers.get('content-length')).toBe('1000')
    const read = await response.arrayBuffer().then(
      ({ byteLength }) => byteLength,
      () => 'broken',
    )
    expect(read).toBe('broken')
  })
})

test(
  'a real sandboxd that hangs times out, is used again later, and leaves no partial change',
  async () => {
    await using sandboxes = new RealSandboxes()
    await using control = await startControl({ runner: sandboxes, alter: hurry })
    await makeSandbox(control, 'dev')
    expect((await control.fetch(`${W}/file?path=kept`, { method: 'PUT', body: 'kept' })).status).toBe(200)
    sandboxes.signal('SIGSTOP')
    const requested = [
      control.fetch(`${W}/stat?path=kept`),
      control.fetch(`${W}/tree?path=.`),
      control.fetch(`${W}/file?path=kept`),
      control.fetch(`${W}/file?path=kept`, { method: 'PUT', body: 'lost' }),
      control.fetch(`${W}/file?path=new`, { method: 'PUT', body: 'lost' }),
    ]
    expect(await Promise.all(requested.map(async (each) => codeOf(await each)))).toEqual(
      Array(requested.length).fill('504 timed_out'),
    )
    expect(await codeOf(await control.fetch(`${W}/stat?path=kept`))).toBe('503 workspace_unavailable')
    expect(await breakersOf(control)).toEqual({ breaker: 'open', open: 1 })
    sandboxes.signal('SIGCONT')
    await eventually(async () => (await control.fetch(`${W}/stat?path=kept`)).status === 200, {
      what: 'a retry',
      timeoutMs: 5 * OPEN_MS,
    })
    expect(await breakersOf(control)).toEqual({ breaker: 'closed', open: 0 })
    // A change that timed out was applied completely or not at all.
    const [folder = ''] = sandboxes.folders
    const left = readdirSync(folder).filter((name) => !['key', 'sock', 'new'].includes(name))
    expect(left).toEqual(['kept'])
    expect(['kept', 'lost']).toContain(readFileSync(path.join(folder, 'kept'), 'utf8'))
  },
  TIMEOUT_MS,
)

test(
  'a real sandboxd that hangs during an upload times out, however much remains',
  async () => {
    await using sandboxes = new RealSandboxes()
    await using control = await startControl({ runner: sandboxes, alter: hurry })
    await makeSandbox(control, 'dev')
    const large = new Uint8Array(64 * 1024 ** 2)
    for (const known of [false, true]) {
      sandboxes.signal('SIGSTOP')
      const put = control.fetch(`${W}/file?path=large`, { method: 'PUT', body: large })
      expect([known, await codeOf(await put)]).toEqual([known, '504 timed_out'])
      sandboxes.signal('SIGCONT')
      expect((await control.fetch(`${W}/stat?path=.`)).status).toBe(200)
    }
    const [folder = ''] = sandboxes.folders
    await eventually(async () => (await control.fetch(`${W}/file?path=x`, { method: 'PUT', body: 'x' })).ok, {
      what: 'a response again',
      timeoutMs: 5 * OPEN_MS,
    })
    expect(readdirSync(folder).toSorted()).toEqual(['key', 'sock', 'x'])
  },
  TIMEOUT_MS,
)

test('a lost sandbox is reported as stopped to file requests, and is not started', async () => {
  await using sandboxes = new FakeSandboxes()
  await using control = await startControl({ runner: sandboxes })
  await makeSandbox(control, 'dev')
  const [id = ''] = control.host.sandboxes.keys()
  control.host.sandboxes.set(id, { id, state: 'stopped' })
  await sandboxes.stop(id)
  expect(await codeOf(await control.fetch(`${W}/stat?path=a`))).toBe('409 sandbox_stopped')
  expect(sandboxes.starts).toBe(1)
})
