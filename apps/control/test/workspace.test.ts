import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient, textIn } from './support/api-client.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const W = '/api/workspaces/dev'
const MIB = 1024 * 1024

/** A file request as received by the sandbox. */
interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

let sandboxes: FakeSandboxes
let control: RunningControl
let ann: ApiClient
const seen: Seen[] = []
/** The response of the sandbox to file requests. */
let answer: (request: Request) => Response | Promise<Response> = () => Response.json({})

/** Serves file requests after sandboxd verified their token. */
async function serve(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const isUpload = request.method === 'PUT' && pathname !== '/workspace/archive'
  seen.push({
    method: request.method,
    path: pathname + search,
    headers: Object.fromEntries(request.headers),
    body: isUpload || request.method === 'POST' ? await request.text() : '',
  })
  return answer(request)
}

beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  sandboxes.files = serve
  const limits = { workspaceCostPerMinutePerUser: 1_000 }
  control = await startControl({ runner: sandboxes, config: { limits }, bindings: { JWT_SECRET } })
  ann = await ApiClient.named(control, 'ann')
  expect((await ann.post('/api/sandboxes', { name: 'dev' })).status).toBe(201)
})
afterEach(() => {
  answer = () => Response.json({})
  seen.length = 0
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

function send(method: string, route: string, init: RequestInit = {}): Promise<Response> {
  const headers = { host: `localhost:${control.port}`, authorization: `Bearer ${ann.bearer}` }
  return fetch(`http://127.0.0.1:${control.port}${route}`, {
    ...init,
    method,
    headers: { ...headers, ...Object.fromEntries(new Headers(init.headers)) },
    redirect: 'manual',
    // A server that did not read the whole body closes the connection after its response.
    keepalive: false,
  })
}

/** Bytes that are produced while they are read. */
function endless(chunk: string, onCancel: () => void): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setInterval> | undefined
  return new ReadableStream({
    start(controller) {
      timer = setInterval(() => controller.enqueue(new TextEncoder().encode(chunk)), 20)
    },
    cancel() {
      clearInterval(timer)
      onCancel()
    },
  })
}

/** A body of this many parts. Each comes in a later turn; otherwise Bun knows the length and sends it. */
function slowly(parts: number, part: Uint8Array): ReadableStream<Uint8Array> {
  let left = parts
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(0)
      if (left === 0) return controller.close()
      left -= 1
      controller.enqueue(part)
    },
  })
}

const EVENTS = { headers: { 'content-type': 'text/event-stream' } }
const BYTES = { 'content-type': 'application/octet-stream' }

describe('a file request', () => {
  test('reaches the sandbox with its exact path and an internal token, and nothing else of the caller (threat T46)', async () => {
    const cookie = { cookie: 'a=b', 'x-forwarded-for': '1.2.3.4', 'x-sandwire-call': '{}', te: 'trailers' }
    const response = await send('GET', `${W}/stat?path=a%FF%2Fb`, {
      headers: { ...cookie, range: 'bytes=0-3' },
    })
    expect(response.status).toBe(200)
    const [one] = seen
    expect(one).toMatchObject({ method: 'GET', path: '/workspace/stat?path=a%FF%2Fb' })
    const { authorization, ...rest } = one?.headers ?? {}
    expect(rest).toEqual({ host: 'localhost', range: 'bytes=0-3' })
    expect(authorization).not.toContain(String(ann.bearer))
    const { claims } = sandboxes.seen.at(-1) ?? {}
    expect(claims).toMatchObject({ method: 'GET', authority: 'driver', exec: true })
  })

  test('of the compat API names its sandbox to control only, or selects the default', async () => {
    expect((await send('GET', '/api/tree?path=.&sandbox=dev')).status).toBe(200)
    expect(seen.at(-1)?.path).toBe('/workspace/compat/tree?path=.')
    expect((await ann.get('/api/tree?path=.')).status).toBe(404)
    await ann.post('/api/sandboxes', { name: 'default' })
    expect((await ann.get('/api/tree?path=.')).status).toBe(200)
    await ann.delete('/api/sandboxes/default')
  })

  test('is refused with unknown parameters, headers or bodies', async () => {
    for (const [method, route, body, headers] of [
      ['GET', `${W}/stat?path=a&path=b`],
      ['GET', `${W}/stat?path=a&depth=2`],
      ['GET', `${W}/stat?path=a&sandbox=dev`],
      ['GET', '/api/tree?sandbox=dev&sandbox=dev'],
      ['GET', `${W}/file?path=a`, undefined, { range: 'lines=0' }],
      ['DELETE', `${W}/file?path=a`, 'x'],
      ['PUT', `${W}/uploads/not-hex?path=a&offset=0`, 'x'],
      ['PUT', `${W}/file?path=a`, 'x', { 'content-encoding': 'gzip' }],
      ['POST', `${W}/mkdir`, '{"path":"a","path":"b"}', { 'content-type': 'application/json' }],
      ['POST', `${W}/mkdir`, '{', { 'content-type': 'application/json' }],
      ['POST', `${W}/mkdir`, '{"path":"a"}', { 'content-type': 'text/plain' }],
    ] as const) {
      const init = { ...(body === undefined ? {} : { body }), ...(headers === undefined ? {} : { headers }) }
      const response = await send(method, route, init)
      expect([route, response.status]).toEqual([route, 400])
    }
    expect(seen).toEqual([])
  })

  test('passes its body on: validated JSON, and bytes unchanged', async () => {
    expect((await ann.post(`${W}/mkdir`, { path: 'a' })).status).toBe(200)
    expect(seen.at(-1)).toMatchObject({ path: '/workspace/mkdir', body: '{"path":"a"}' })
    for (const body of ['', 'abc', new Blob(['x'.repeat(MIB)]).stream()]) {
      expect((await send('PUT', `${W}/file?path=a`, { body })).status).toBe(200)
      expect(seen.at(-1)?.body.length).toBe(typeof body === 'string' ? body.length : MIB)
    }
  })

  test('gets the response of the sandbox before it is sent completely', async () => {
    const error = { code: 'disk_full', message: 'Cannot write "a": no space left on the disk' }
    sandboxes.files = async () => Response.json({ error }, { status: 507 })
    try {
      for (const body of [new Uint8Array(64 * MIB), slowly(64, new Uint8Array(MIB))]) {
        const response = await send('PUT', `${W}/file?path=a`, { body })
        expect([response.status, Object(await response.json()).error]).toMatchObject([507, error])
      }
    } finally {
      sandboxes.files = serve
    }
  })

  test('is refused when it exceeds its size limit, with and without a length', async () => {
    const json = { 'content-type': 'application/json' }
    const large = 'x'.repeat(17 * MIB)
    for (const body of [large, slowly(17, new Uint8Array(MIB))]) {
      const response = await send('PUT', '/api/file?path=a&sandbox=dev', { body, headers: json })
      expect(response.status).toBe(413)
      expect(response.headers.get('x-sandwire-code')).toBe('frame_too_large')
    }
    const response = await send('POST', `${W}/mkdir`, {
      body: `{"path":"${'x'.repeat(MIB)}"}`,
      headers: json,
    })
    expect(response.status).toBe(413)
  })

  test('is refused while it is being sent, without reading its body', async () => {
    const weak = await ApiClient.named(control, 'ann', { scope: 'sandbox:connect' })
    const ending = Promise.withResolvers<void>()
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(new Uint8Array(1_000))
        await ending.promise
        controller.close()
      },
    })
    const headers = { authorization: `Bearer ${weak.bearer}` }
    const response = await send('PUT', `${W}/file?path=a`, { body, headers })
    expect(response.status).toBe(403)
    ending.resolve()
    expect(seen).toEqual([])
  })

  test('never starts a sandbox', async () => {
    await ann.post('/api/sandboxes', { name: 'asleep', start: false })
    const { starts } = sandboxes
    for (const route of ['/api/workspaces/asleep/stat?path=a', '/api/tree?sandbox=asleep'])
      expect((await ann.get(route)).status).toBe(409)
    expect(codeIn(await ann.get('/api/workspaces/asleep/stat?path=a'))).toBe('409 sandbox_stopped')
    expect(sandboxes.starts).toBe(starts)
  })

  test('is not found without access, and forbidden for viewers (threat T4)', async () => {
    const eve = await ApiClient.named(control, 'eve')
    const sandbox = textIn(await ann.get('/api/sandboxes/dev'), 'id')
    const route = `/api/workspaces/${sandbox}/stat?path=a`
    expect(codeIn(await eve.get(route))).toBe('404 sandbox_not_found')
    const made = await ann.post('/api/grants', { sandbox: 'dev', role: 'viewer' })
    await eve.post('/api/grants/redeem', { link: linkIn(made) })
    expect(codeIn(await eve.get(route))).toBe('403 forbidden')
    expect(seen).toEqual([])
  })

  test('is limited by its cost, with a retry-after', async () => {
    const rob = await ApiClient.named(control, 'rob')
    await rob.post('/api/sandboxes', { name: 'dev' })
    answer = () => new Response('', { headers: { 'content-type': 'application/x-tar' } })
    const all = await Promise.all(Array.from({ length: 110 }, () => rob.get(`${W}/archive?path=.`)))
    const refused = all.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
    answer = () => Response.json({})
    const searches = await Promise.all(
      Array.from({ length: 50 }, () => rob.get('/api/search?q=x&sandbox=dev')),
    )
    const reply = searches.find(({ status }) => status === 429)
    expect([reply?.status, reply?.headers.get('x-sandwire-code')]).toEqual([429, 'rate_limited'])
    expect((await rob.get(`${W}/stat?path=.`)).status).toBe(200)
    expect((await ann.get(`${W}/tree?path=.`)).status).toBe(200)
  })

  test('is audited when it changes something, not when it reads', async () => {
    await send('PUT', `${W}/file?path=secret-name`, { body: 'x' })
    await ann.get(`${W}/stat?path=secret-name`)
    answer = () => Response.json({ error: { code: 'file_not_found', message: 'x' } }, { status: 404 })
    await ann.delete(`${W}/file?path=secret-name`)
    const rows = async (): Promise<string> => JSON.stringify((await ann.get('/api/audit?limit=5')).body)
    await eventually(async () => (await rows()).includes('file.delete'), { what: 'the rows to arrive' })
    expect(await rows()).toContain('"file.write"')
    expect(await rows()).toContain('"file_not_found"')
    expect(await rows()).not.toContain('secret-name')
  })

  test('may have a body of unknown length up to the limit, to the byte', async () => {
    const limit = 256 * 1024
    const text = JSON.stringify({ message: 'm' })
    const padded = (bytes: number): ReadableStream<Uint8Array> =>
      slowly(1, new TextEncoder().encode(text.padEnd(bytes)))
    const post = (bytes: number): Promise<Response> =>
      send('POST', `${W}/git/commit`, {
        body: padded(bytes),
        headers: { 'content-type': 'application/json' },
      })
    expect((await post(limit)).status).toBe(200)
    expect(seen.map(({ body }) => body.length)).toEqual([limit])
    expect((await post(limit + 1)).status).toBe(413)
  })

  test('of a chunked upload is audited at its start and its end', async () => {
    const count = async (action: string): Promise<number> => {
      const { body } = await ann.get(`/api/audit?limit=1000&action=${action}`)
      return JSON.stringify(body).split(`"${action}"`).length - 1
    }
    const [written, deleted] = [await count('file.write'), await count('file.delete')]
    const upload = `${W}/uploads/${'a'.repeat(32)}`
    for (const offset of [0, 1, 2, 3, 4])
      expect((await send('PUT', `${upload}?path=large&offset=${offset}`, { body: 'x' })).status).toBe(200)
    expect((await ann.post(upload, { path: 'large', size: 5 })).status).toBe(200)
    expect((await ann.delete(`${upload}?path=large`)).status).toBe(200)
    await eventually(async () => (await count('file.delete')) === deleted + 1, { what: 'the last row' })
    expect(await count('file.write')).toBe(written + 2)
  })

  test("that continues another account's upload is audited once, until the upload restarts", async () => {
    const bob = await ApiClient.named(control, 'bob')
    const grant = await ann.post('/api/grants', { sandbox: 'dev', role: 'collaborator' })
    await bob.post('/api/grants/redeem', { link: linkIn(grant) })
    const id = textIn(await ann.get('/api/sandboxes/dev'), 'id')
    const rowsOf = async (name: string): Promise<number> => {
      const { body } = await ann.get('/api/audit?limit=1000&action=file.write')
      return JSON.stringify(body).split(`"actorName":"${name}"`).length - 1
    }
    const put = async ({ bearer }: ApiClient, offset: number): Promise<number> => {
      const upload = `/api/workspaces/${id}/uploads/${'b'.repeat(32)}?path=large&offset=${offset}`
      return (await send('PUT', upload, { body: 'x', headers: { authorization: `Bearer ${bearer}` } })).status
    }
    const before = await rowsOf('ann')
    const expectRows = async (anns: number, bobs: number): Promise<void> => {
      // Rows arrive in order, so the last of these follows all others.
      expect(await put(ann, 0)).toBe(200)
      await eventually(async () => (await rowsOf('ann')) === before + anns, { what: 'the rows of ann' })
      expect(await rowsOf('bob')).toBe(bobs)
    }
    expect(await put(ann, 0)).toBe(200)
    answer = () => Response.json({ error: { code: 'conflict', message: 'x' }, received: 1 }, { status: 409 })
    expect(await put(bob, 9)).toBe(409)
    answer = () => Response.json({})
    for (const [caller, offset] of [
      [bob, 1],
      [ann, 2],
      [bob, 3],
      [bob, 4],
    ] as const)
      expect(await put(caller, offset)).toBe(200)
    await expectRows(2, 1)
    expect(await put(bob, 1)).toBe(200)
    await expectRows(3, 2)
  })
})

describe('a file response', () => {
  test('has the headers about the file, and no other header of the sandbox (threat T46)', async () => {
    answer = () =>
      new Response('hello', {
        headers: {
          ...BYTES,
          etag: '"a"',
          'accept-ranges': 'bytes',
          'set-cookie': 'a=b',
          location: '/x',
          'content-disposition': 'inline',
          'x-powered-by': 'x',
          'access-control-allow-origin': '*',
        },
      })
    const response = await send('GET', `${W}/file?path=a`)
    expect(await response.text()).toBe('hello')
    const { 'x-request-id': id, ...headers } = Object.fromEntries(response.headers)
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers).toEqual({
      ...BYTES,
      etag: '"a"',
      'accept-ranges': 'bytes',
      'content-length': '5',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'referrer-policy': 'no-referrer',
      'content-disposition': 'attachment',
      'x-content-type-options': 'nosniff',
    })
  })

  test('keeps its status: 206, 304 or headers only', async () => {
    answer = ({ headers }) =>
      headers.has('if-none-match')
        ? new Response(null, { status: 304, headers: { etag: '"a"' } })
        : new Response('ell', { status: 206, headers: { ...BYTES, 'content-range': 'bytes 1-3/5' } })
    const part = await send('GET', `${W}/file?path=a`, { headers: { range: 'bytes=1-3' } })
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([
      206,
      'bytes 1-3/5',
      'ell',
    ])
    const same = await send('GET', `${W}/file?path=a`, { headers: { 'if-none-match': '"a"' } })
    expect([same.status, same.headers.get('etag')]).toEqual([304, '"a"'])
    answer = () => new Response(null, { headers: { ...BYTES, 'content-length': '1234', etag: '"a"' } })
    const head = await send('HEAD', `${W}/file?path=a`)
    expect(seen.at(-1)?.method).toBe('HEAD')
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '1234'])
  })

  test('to HEAD has the status of GET, also when the file or the sandbox is missing', async () => {
    answer = () => new Response(null, { status: 404 })
    expect((await send('HEAD', `${W}/file?path=a`)).status).toBe(404)
    answer = () => new Response(null, { status: 403 })
    expect((await send('HEAD', `${W}/file?path=a`)).status).toBe(403)
    expect((await send('HEAD', '/api/workspaces/nowhere/file?path=a')).status).toBe(404)
  })

  test('of a file needs a length, from one of its headers', async () => {
    const stream = (): ReadableStream<Uint8Array> => slowly(5, new TextEncoder().encode('x'))
    answer = () => new Response(stream(), { headers: { ...BYTES, 'sandwire-size': '5' } })
    const whole = await send('GET', `${W}/file?path=a`)
    expect([whole.headers.get('content-length'), await whole.text()]).toEqual(['5', 'xxxxx'])
    const part = { ...BYTES, 'sandwire-size': '9', 'content-range': 'bytes 2-6/9' }
    answer = () => new Response(stream(), { status: 206, headers: part })
    const some = await send('GET', `${W}/file?path=a`)
    expect([some.headers.get('content-length'), await some.text()]).toEqual(['5', 'xxxxx'])
    for (const size of ['x', '-1', '9'.repeat(16)]) {
      answer = () => new Response(stream(), { headers: { ...BYTES, 'sandwire-size': size } })
      expect(codeIn(await ann.get(`${W}/file?path=a`))).toBe('502 sandbox_unreachable')
    }
    answer = () => new Response(stream(), { headers: BYTES })
    expect(codeIn(await ann.get(`${W}/file?path=a`))).toBe('502 sandbox_unreachable')
  })

  test('of a file above the size limit is an error, but a range of it is sent (threat T15)', async () => {
    const size = String(8 * 1024 ** 4)
    answer = ({ headers }) =>
      headers.has('range')
        ? new Response('ab', { status: 206, headers: { ...BYTES, 'content-range': `bytes 0-1/${size}` } })
        : new Response(
            endless('x', () => undefined),
            { headers: { ...BYTES, 'sandwire-size': size } },
          )
    expect(codeIn(await ann.get(`${W}/file?path=a`))).toBe('413 file_too_large')
    const part = await send('GET', `${W}/file?path=a`, { headers: { range: 'bytes=0-1' } })
    expect([part.status, await part.text()]).toEqual([206, 'ab'])
  })

  test('that redirects, is encoded, too large or of another type is an error of the sandbox (threat T22)', async () => {
    for (const bad of [
      () => Response.json({}, { status: 302, headers: { location: 'http://evil.example' } }),
      () => new Response(null, { status: 307, headers: { location: '/workspace/file' } }),
      () => new Response('<script>', { headers: { 'content-type': 'text/html' } }),
      () => new Response('RAW', { status: 500 }),
      () => Response.json({ error: { code: 'internal', message: 'RAW' } }, { status: 500 }),
      () =>
        new Response(Bun.gzipSync('{}'), {
          headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        }),
      () => new Response(new Uint8Array(65 * MIB), { headers: { 'content-type': 'application/json' } }),
    ]) {
      answer = bad
      const reply = await ann.get(`${W}/stat?path=a`)
      expect(codeIn(reply)).toBe('502 sandbox_unreachable')
      expect(JSON.stringify(reply.body)).not.toContain('RAW')
      expect(reply.headers.get('location')).toBeNull()
    }
  })

  test('is streamed, and is canceled at the sandbox when its client disconnects', async () => {
    for (const [route, type] of [
      ['watch?path=.', 'text/event-stream'],
      ['search?q=x', 'application/x-ndjson'],
    ]) {
      let isCanceled = false
      answer = () =>
        new Response(
          endless('data: x\n\n', () => (isCanceled = true)),
          { headers: { 'content-type': `${type}` } },
        )
      const leaving = new AbortController()
      const response = await send('GET', `${W}/${route}`, { signal: leaving.signal })
      expect(response.headers.get('content-type')).toBe(`${type}`)
      await response.body?.getReader().read()
      leaving.abort()
      await eventually(() => isCanceled, { what: 'the sandbox to see the abort' })
    }
  })

  test('to HEAD has headers only, and its body is canceled at the sandbox', async () => {
    let isCanceled = false
    answer = () =>
      new Response(
        endless('data: x\n\n', () => (isCanceled = true)),
        EVENTS,
      )
    expect((await send('HEAD', `${W}/watch?path=.`)).status).toBe(200)
    await eventually(() => isCanceled, { what: 'the sandbox to see the abort' })
  })

  test('is aborted at the sandbox when its client disconnects before it', async () => {
    let isAborted = false
    const never = Promise.withResolvers<Response>()
    answer = (request) => {
      request.signal.addEventListener('abort', () => (isAborted = true))
      return never.promise
    }
    const leaving = new AbortController()
    const requested = send('GET', `${W}/stat?path=a`, { signal: leaving.signal }).catch(() => undefined)
    await eventually(() => seen.length === 1, { what: 'the request to reach the sandbox' })
    leaving.abort()
    await requested
    await eventually(() => isAborted, { what: 'the sandbox to see the abort' })
    never.resolve(Response.json({}))
  })
})

describe('a revoked authorization (threat T6)', () => {
  /** Opens a watch. */
  async function watch(
    caller: ApiClient,
  ): Promise<{ readonly read: Promise<unknown>; readonly isOver: () => boolean }> {
    const sandbox = textIn(await ann.get('/api/sandboxes/dev'), 'id')
    let isOver = false
    answer = () =>
      new Response(
        endless('data: x\n\n', () => (isOver = true)),
        EVENTS,
      )
    const headers = { host: `localhost:${control.port}`, authorization: `Bearer ${caller.bearer}` }
    const url = `http://127.0.0.1:${control.port}/api/workspaces/${sandbox}/watch?path=.`
    const response = await fetch(url, { headers })
    expect(response.status).toBe(200)
    return { read: response.text().catch(() => undefined), isOver: () => isOver }
  }

  test('ends a response in progress when a grant is revoked', async () => {
    const cat = await ApiClient.named(control, 'cat')
    const made = await ann.post('/api/grants', { sandbox: 'dev', role: 'collaborator' })
    await cat.post('/api/grants/redeem', { link: linkIn(made) })
    const { read, isOver } = await watch(cat)
    expect((await ann.delete(`/api/grants/${textIn(made, 'grant')}`)).status).toBe(204)
    await read
    await eventually(isOver, { what: 'the sandbox to see the abort' })
  })

  test('ends a response in progress when its account signs out', async () => {
    const dan = await ApiClient.named(control, 'dan', { jti: 'laptop' })
    const made = await ann.post('/api/grants', { sandbox: 'dev', role: 'collaborator' })
    await dan.post('/api/grants/redeem', { link: linkIn(made) })
    const { read, isOver } = await watch(dan)
    expect((await dan.post('/api/signout', undefined)).status).toBe(204)
    await read
    await eventually(isOver, { what: 'the sandbox to see the abort' })
  })
})

describe('the compat API', () => {
  test('has errors of one format, from control and from the sandbox', async () => {
    const anonymous = new ApiClient(control, undefined)
    for (const [requested, status, code] of [
      [anonymous.get('/api/tree'), 401, 'unauthorized'],
      [ann.get('/api/tree?sandbox=none'), 404, 'sandbox_not_found'],
      [ann.get('/api/tree?sandbox=dev&x=1'), 400, 'bad_request'],
      [ann.delete('/api/tree'), 405, 'method_not_allowed'],
      [ann.get('/api/sessions?sandbox=none'), 404, 'sandbox_not_found'],
    ] as const) {
      const reply = await requested
      expect([reply.status, reply.headers.get('x-sandwire-code')]).toEqual([status, code])
      expect(Object.keys(Object(reply.body))).toEqual(['detail'])
      expect(typeof Object(reply.body).detail).toBe('string')
      expect(reply.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    }
  })

  test('passes on error messages of the sandbox about files and parameters', async () => {
    answer = () =>
      Response.json(
        { detail: 'File not found: a' },
        { status: 404, headers: { 'x-sandwire-code': 'file_not_found' } },
      )
    const reply = await ann.get('/api/file?path=a&sandbox=dev')
    expect([reply.status, reply.body]).toEqual([404, { detail: 'File not found: a' }])
    const detail = [{ type: 'missing', loc: ['query', 'path'], msg: 'Field required', input: null }]
    answer = () => Response.json({ detail }, { status: 422 })
    const faults = await ann.get('/api/file?sandbox=dev')
    expect([faults.status, faults.body, faults.headers.get('x-sandwire-code')]).toEqual([
      422,
      { detail },
      'bad_request',
    ])
    expect(faults.headers.get('x-sandwire-whole')).toBeNull()
  })

  test('lists sessions, terminals first, and creates ids', async () => {
    const sandbox = textIn(await ann.get('/api/sandboxes/dev'), 'id')
    const facts = (tail: string, mode: string, state: string) => ({
      id: `${sandbox}.${tail}`,
      state,
      mode,
      cmd: 'x',
      attachments: 2,
      output: {
        start: 3,
        end: 10,
      },
      lastInputMs: null,
      lastOutputMs: null,
      keepSeconds: 60,
      pinned: false,
      exit: null,
    })
    const [pipe, pty] = ['0123456789abcdefghjkmnpqrs', '1123456789abcdefghjkmnpqrs']
    sandboxes.activity = {
      attachments: 0,
      sessions: [facts(pipe, 'pipe', 'running'), facts(pty, 'pty', 'exited')],
      exits: [],
    }
    const listed = await ann.get('/api/sessions?sandbox=dev')
    sandboxes.activity = { attachments: 0, sessions: [], exits: [] }
    expect(listed.body).toEqual({
      sessions: [
        { id: `${sandbox}.${pty}`, type: 'pty', alive: false, clients: 2, history_count: 7 },
        { id: `${sandbox}.${pipe}`, type: 'stream', alive: true, clients: 2, history_count: 7 },
      ],
    })
    expect((await ann.get('/api/sessions')).body).toEqual({ sessions: [] })
    expect(textIn(await ann.post('/api/sessions', undefined), 'session_id')).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
  })

  test('reports its capabilities, and nothing about the machine', async () => {
    const features = {
      files: true,
      git: true,
      pty: true,
      chat_claude_code: false,
      stream: false,
      approval: false,
      sandbox: true,
    }
    expect((await ann.get('/api/capabilities')).body).toMatchObject({ version: '0.1.0', features })
    expect((await ann.get('/api/config')).body).toMatchObject({
      workspace_root: '/workspace',
      workspace_mode: 'sandbox',
      paths: { files: '.' },
    })
    expect((await ann.get('/api/project')).body).toEqual({ root: '/workspace' })
    const health = await new ApiClient(control, undefined).get('/health')
    expect(health.body).toMatchObject({
      status: 'ok',
      workspace: '/workspace',
      workspace_mode: 'sandbox',
      features,
    })
  })
})

describe('where one folder is served', () => {
  test('the compat API selects it and names it', async () => {
    await using places = new FakeSandboxes()
    places.files = async () => Response.json({ entries: [], path: '.' })
    await using local = await startControl({ runner: places, config: { workspaceMode: 'local' } })
    expect((await local.fetch('/api/tree')).status).toBe(200)
    expect((await local.fetch('/api/tree?sandbox=local')).status).toBe(200)
    expect(await (await local.fetch('/health')).json()).toMatchObject({
      workspace: '/workspace',
      workspace_mode: 'local',
      features: { sandbox: false },
    })
  })
})
