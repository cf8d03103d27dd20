import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { attach } from '@sandwire/client'
import { sandboxIdOf } from '@sandwire/internal-api'
import { connectPlain, eventually } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from '../../apps/control/test/support/control.ts'
import { RealSandboxes } from '../../apps/control/test/support/real-sandboxes.ts'

let sandboxes: RealSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControl({ runner: sandboxes, config: { alarmMs: 200 } })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const headers = (): Record<string, string> => ({
  authorization: `Bearer ${TOKEN}`,
  host: `localhost:${control.port}`,
})
const json = async (response: Response): Promise<Record<string, unknown>> =>
  Object(await response.json()) as Record<string, unknown>
const digest = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

/** Runs a process through control with the client library. */
function run(query: string, cmd: string, args: readonly string[] = []) {
  const chunks: Uint8Array[] = []
  const handle = attach({
    url: `http://127.0.0.1:${control.port}/attach?${query}`,
    request: { cmd, args },
    credentials: async () => ({ headers: headers() }),
    onOutput: (_stream, bytes) => void chunks.push(bytes),
  })
  return { handle, output: () => Buffer.concat(chunks) }
}

describe('the real sandboxd behind control', () => {
  test('carries bytes both ways in order, then the exit', async () => {
    const sent = crypto.getRandomValues(new Uint8Array(65_536))
    const { handle, output } = run('sandbox=real', 'sh', ['-c', 'cat; exit 7'])
    const whole: Uint8Array[] = []
    for (let count = 0; count < 256; count++) {
      whole.push(sent)
      await handle.write(sent)
    }
    handle.eof()
    expect(await handle.exit).toMatchObject({ code: 7 })
    expect(digest(output())).toBe(digest(Buffer.concat(whole)))
  })

  test('serves plain clients', async () => {
    const url = `ws://127.0.0.1:${control.port}/attach?sandbox=real&cmd=sh&arg=-c&arg=echo+hi`
    await using client = await connectPlain(url, { headers: headers() })
    expect((await client.closed).code).toBe(1000)
    expect(client.stdout.text).toBe('hi\n')
  })

  test('runs a command and responds with its output', async () => {
    const body = { cmd: 'sh', args: ['-c', 'printf out; printf err >&2; exit 3'] }
    const response = await control.fetch('/api/sandboxes/real/exec', { method: 'POST', json: body })
    expect(await json(response)).toMatchObject({
      exit: { code: 3, signal: null },
      output: expect.stringMatching(/^(outerr|errout)$/),
      isCut: false,
    })
    const missing = { cmd: 'no-such-command' }
    const answer = await control.fetch('/api/sandboxes/real/exec', { method: 'POST', json: missing })
    expect(await json(answer)).toMatchObject({ exit: { code: 127 } })
    const endless = { cmd: 'sleep', args: ['100'], timeoutSeconds: 1 }
    expect((await control.fetch('/api/sandboxes/real/exec', { method: 'POST', json: endless })).status).toBe(
      504,
    )
  })

  test('runs a command that writes 100 MB and responds with the tail', async () => {
    const body = {
      cmd: 'sh',
      args: ['-c', 'head -c 100000000 /dev/zero | tr "\\0" a; printf last; exit 3'],
      timeoutSeconds: 60,
    }
    const response = await control.fetch('/api/sandboxes/real/exec', { method: 'POST', json: body })
    const { output, ...result } = await json(response)
    expect(result).toMatchObject({ exit: { code: 3, signal: null }, isCut: true })
    expect(String(output)).toMatch(/^a+last$/)
    expect(String(output)).toHaveLength(1024 * 1024)
  })

  test('shows, lists, pins, reads and ends sessions', async () => {
    const body = {
      cmd: 'sh',
      args: ['-c', 'echo started; sleep 100'],
      createId: 'ab'.repeat(16),
      pinned: true,
    }
    const start = async (): Promise<Record<string, unknown>> =>
      json(await control.fetch('/api/sandboxes/real/sessions', { method: 'POST', json: body }))
    const { id, sandbox } = await start()
    expect((await start())['id']).toBe(id)
    expect(sandboxIdOf(String(id))).toBe(String(sandbox))
    const path = `/api/account/sessions/${String(id)}`
    expect(await json(await control.fetch(path))).toMatchObject({ state: 'running', cmd: 'sh', pinned: true })
    const { sessions } = await json(await control.fetch('/api/account/sessions'))
    expect(sessions).toContainEqual(expect.objectContaining({ id, sandbox, sandboxName: 'real' }))
    const output = await eventually(
      async () => {
        const response = await control.fetch(`/api/sandboxes/real/sessions/${String(id)}/output`)
        return response.headers.get('sandwire-end') === '8' ? response.text() : undefined
      },
      { what: 'its output' },
    )
    expect(output).toBe('started\n')
    expect((await control.fetch(`${path}/pin`, { method: 'DELETE' })).status).toBe(204)
    expect(await json(await control.fetch(path))).toMatchObject({ pinned: false })
    expect((await control.fetch(path, { method: 'DELETE' })).status).toBe(202)
    await eventually(async () => [404, 410].includes((await control.fetch(path)).status), {
      what: 'its end',
    })
  })

  test('accepts a command line of the largest request size', async () => {
    const { handle, output } = run('sandbox=real', 'sh', ['-c', 'printf %s "$1"', 'x', 'a'.repeat(14_000)])
    await handle.exit
    expect(output().byteLength).toBe(14_000)
  })
})
