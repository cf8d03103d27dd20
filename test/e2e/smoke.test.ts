import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { openWebSocket, type Socket } from '@sandwire/client'
import { type RunningHost, startHost } from './support/control.ts'

const SMOKE = resolve(import.meta.dir, '../../deploy/cloudflare/smoke.ts')
const STEPS = ['healthz', 'readyz', 'page', 'create', 'exec', 'attach', 'stop', 'destroy']

/** Runs the smoke test as an operator does. */
async function smoke(url: string | readonly string[], token: string) {
  const child = Bun.spawn([process.execPath, SMOKE, ...[url].flat()], {
    env: { ...process.env, SANDWIRE_TOKEN: token },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  const lines = stdout.trimEnd().split('\n')
  return { status, stderr, lines, titles: lines.map((line) => line.split(/\s+/)[1]) }
}

async function passOn(host: RunningHost, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const headers = new Headers(request.headers)
  headers.delete('host')
  const body = request.body === null ? {} : { body: await request.arrayBuffer() }
  return fetch(`${host.url}${pathname}${search}`, {
    method: request.method,
    headers,
    ...body,
    decompress: false,
  })
}

/** Proxies control and answers some paths itself. */
function standBefore(host: RunningHost, answer: (path: string) => Response | undefined) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => answer(new URL(request.url).pathname) ?? passOn(host, request),
  })
}

/** Proxies control and changes the output of streams. */
function standInTheStream(host: RunningHost, change: (bytes: Uint8Array) => Uint8Array) {
  interface Passage {
    readonly url: URL
    upstream?: Socket
    /** Messages received before the upstream socket opened. */
    early: (string | Uint8Array)[] | undefined
  }
  return Bun.serve<Passage>({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, server) {
      const { pathname, search } = new URL(request.url)
      if (request.headers.get('upgrade') === null) return passOn(host, request)
      const url = new URL(`ws://127.0.0.1:${host.port}${pathname}${search}`)
      const headers = { 'sec-websocket-protocol': 'sandwire.v1' }
      server.upgrade(request, { data: { url, early: [] }, headers })
      return undefined
    },
    websocket: {
      open(client) {
        const { data } = client
        const request = { url: data.url, protocols: ['sandwire.v1'], headers: host.headers }
        data.upstream = openWebSocket(request, {
          opened: () => {
            for (const message of data.early ?? []) data.upstream?.send(message)
            data.early = undefined
          },
          message: (message) => void client.send(typeof message === 'string' ? message : change(message)),
          closed: (code, reason) => client.close(code, reason),
        })
      },
      message({ data }, message) {
        if (data.early === undefined) data.upstream?.send(message)
        else data.early.push(message)
      },
      close: ({ data }) => data.upstream?.close(1000, ''),
    },
  })
}

describe('the smoke test of a deployment', () => {
  let host: RunningHost
  beforeAll(async () => {
    host = await startHost()
  })
  afterAll(() => host.stop())

  const listSandboxes = async (): Promise<unknown> => (await host.fetch('/api/sandboxes')).json()

  test('reports every step as ok on a working server, and leaves nothing behind', async () => {
    const result = await smoke(host.url, host.token)
    expect(result).toMatchObject({ status: 0, stderr: '', titles: STEPS })
    expect(result.lines.every((line) => line.startsWith('ok '))).toBe(true)
    expect(await listSandboxes()).toEqual({ sandboxes: [] })
  })

  test('fails at the first step that needs a token when the token is wrong, without printing it', async () => {
    const token = `swl_${'x'.repeat(43)}`
    const result = await smoke(host.url, token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz', 'readyz', 'page', 'create'] })
    expect(result.stderr).toContain('unauthorized')
    expect(result.stderr + result.lines.join()).not.toContain(token)
  })

  test('fails at readyz when the server is not ready', async () => {
    using server = standBefore(host, (path) =>
      path === '/readyz' ? Response.json({ status: 'unavailable' }, { status: 503 }) : undefined,
    )
    const result = await smoke(`http://127.0.0.1:${server.port}`, host.token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz', 'readyz'] })
    expect(result.stderr).toContain('503')
  })

  test.each([
    { path: '/', body: '<!doctype html><p>Another page', words: 'is not the workbench' },
    { path: '/assets/', body: 'It works!', words: 'is of type text/plain' },
  ])('fails at the page when $path has another body', async ({ path: place, body, words }) => {
    using server = standBefore(host, (path) =>
      path === place || (place !== '/' && path.startsWith(place)) ? new Response(body) : undefined,
    )
    const result = await smoke(`http://127.0.0.1:${server.port}`, host.token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz', 'readyz', 'page'] })
    expect(result.stderr).toContain(words)
  })

  test('fails at the page when a proxy removes its policy', async () => {
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const answer = await passOn(host, request)
        const headers = new Headers(answer.headers)
        headers.delete('content-security-policy')
        return new Response(answer.body, { status: answer.status, headers })
      },
    })
    const result = await smoke(`http://127.0.0.1:${server.port}`, host.token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz', 'readyz', 'page'] })
    expect(result.stderr).toContain('has no content security policy')
  })

  test('fails when the server does not respond', async () => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { port } = server
    await server.stop(true)
    const result = await smoke(`http://127.0.0.1:${port}`, host.token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz'] })
  })

  test('fails when a command has an unexpected exit code, and removes the sandbox', async () => {
    using server = standBefore(host, (path) =>
      path.endsWith('/exec')
        ? Response.json({ exit: { code: 0, signal: null }, output: 'a\tbä\r\n', isCut: false })
        : undefined,
    )
    const result = await smoke(`http://127.0.0.1:${server.port}`, host.token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz', 'readyz', 'page', 'create', 'exec'] })
    expect(result.lines.at(-1)).toContain('exit is {"code":0')
    expect(await listSandboxes()).toEqual({ sandboxes: [] })
  })

  test('fails when its sandbox does not start, and removes it', async () => {
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { pathname } = new URL(request.url)
        const answer = await passOn(host, request)
        return pathname === '/api/sandboxes'
          ? Response.json({ error: { code: 'sandbox_failed' } }, { status: 502 })
          : answer
      },
    })
    const result = await smoke(`http://127.0.0.1:${server.port}`, host.token)
    expect(result).toMatchObject({ status: 1, titles: ['healthz', 'readyz', 'page', 'create'] })
    expect(result.stderr).toContain('sandbox_failed')
    expect(await listSandboxes()).toEqual({ sandboxes: [] })
  })

  test.each([
    { given: [] },
    { given: ['localhost:8787'] },
    { given: ['ftp://a.test'] },
    { given: ['http://a.test/attach'] },
    { given: ['http://a.test', 'more'] },
  ])('prints its usage for the arguments $given', async ({ given }) => {
    const result = await smoke(given, host.token)
    expect(result).toMatchObject({ status: 2, lines: [''] })
    expect(result.stderr).toStartWith('Usage: ')
  })

  test('fails when a proxy changes a byte of a stream', async () => {
    using server = standInTheStream(host, (bytes) => bytes.with(-1, (bytes.at(-1) ?? 0) ^ 1))
    const result = await smoke(`http://127.0.0.1:${server.port}`, host.token)
    expect(result).toMatchObject({
      status: 1,
      titles: ['healthz', 'readyz', 'page', 'create', 'exec', 'attach'],
    })
    expect(result.lines.at(-1)).toContain('the echoed bytes differ')
    expect(await listSandboxes()).toEqual({ sandboxes: [] })
  })
})
