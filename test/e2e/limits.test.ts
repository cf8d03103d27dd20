import { expect, test } from 'bun:test'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readProcessTable } from '@sandwire/testing'
import { type RunningHost, startHost } from './support/control.ts'
import { commandOf } from './support/deployment.ts'

async function post(host: RunningHost, path: string, json: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return host.fetch(path, { method: 'POST', headers, body: JSON.stringify(json) })
}

async function codeOf(response: Response): Promise<unknown> {
  return (await response.json()).error.code
}

/** Sends an upgrade request and returns the response. */
async function attach(host: RunningHost): Promise<Response> {
  return host.fetch('/attach?sandbox=dev&create=0&cmd=cat', {
    headers: {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    },
  })
}

/** The first message on a socket that the server opens only to report an error. */
async function readErrorFrame(host: RunningHost): Promise<unknown> {
  // Bun accepts headers here; the DOM types do not have them.
  const options: unknown = {
    headers: { authorization: `Bearer ${host.token}` },
    protocols: ['sandwire.v1'],
  }
  const url = `ws://127.0.0.1:${host.port}/attach?sandbox=dev&create=0&cmd=cat`
  const socket = new WebSocket(url, options as string[])
  const message = await new Promise((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => resolve(data))
    socket.addEventListener('close', () => reject(new Error('closed without a word')))
  })
  return JSON.parse(String(message))
}

test('enforces the configured limits on sessions and attaches, with a Retry-After each', async () => {
  const data = await mkdtemp(join(tmpdir(), 'sandwire-limits-'))
  const limits = { sessionsPerSandbox: 2, attachesPerMinutePerUser: 3, outputBytesPerSecond: 123_457 }
  await writeFile(join(data, 'settings.json'), JSON.stringify({ limits }), { mode: 0o600 })
  try {
    await using host = await startHost({ data })
    const made = await post(host, '/api/sandboxes', { name: 'dev' })
    expect(made.status).toBe(201)
    const { id } = await made.json()
    const daemons = readProcessTable()
      .map(({ pid }) => commandOf(pid))
      .filter((command) => command.includes(`--sandbox\0${id}`))
    // The output limit itself is tested with sandboxd.
    expect(daemons.at(-1)).toContain('--output-bytes-per-second\x00123457')
    for (const status of [201, 201, 429]) {
      const response = await post(host, '/api/sandboxes/dev/sessions', { cmd: 'cat' })
      expect(response.status).toBe(status)
      if (status === 201) continue
      expect(await codeOf(response)).toBe('too_many_sessions')
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    // The sandbox is full, so these attaches fail, but they count.
    expect(await readErrorFrame(host)).toMatchObject({
      type: 'error',
      code: 'too_many_sessions',
      fatal: true,
      message: expect.stringMatching(/: try again in [0-9]+ s$/),
    })
    const codes: unknown[] = []
    for (let index = 0; index < 3; index += 1) {
      const response = await attach(host)
      codes.push(await codeOf(response))
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(codes).toEqual(['too_many_sessions', 'too_many_sessions', 'too_many_attaches'])
    await host.stop()
  } finally {
    await rm(data, { recursive: true, force: true })
  }
})
