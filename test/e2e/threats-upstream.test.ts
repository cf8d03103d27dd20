import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isErrorCode } from '@sandwire/protocol'
import { OPCODE, openRawTcp, openRawWebSocketOrThrow, type RawTcp, upgradeRequest } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from '../../apps/control/test/support/control.ts'
import { bundleProgram } from '../../apps/host/src/isolation/daemon-bundle.ts'
import { FORGED_RESPONSES, FORGED_TEXT } from './support/forged-sandboxd.ts'
import { ManagedSandboxes } from './support/managed-sandboxes.ts'

const headers = { authorization: `Bearer ${TOKEN}` }
const names = Object.keys(FORGED_RESPONSES)

async function readUntil(tcp: RawTcp, end: string): Promise<string> {
  let text = ''
  for (let bytes = await tcp.read(); bytes !== undefined; bytes = await tcp.read()) {
    text += new TextDecoder().decode(bytes)
    if (text.endsWith(end)) break
  }
  return text
}

describe('a sandbox whose sandboxd was replaced by a forged one', () => {
  let folder = ''
  let runner: ManagedSandboxes
  let control: RunningControl
  beforeAll(async () => {
    folder = mkdtempSync('/tmp/forged-sandboxd-')
    const source = { name: 'forged', root: join(import.meta.dir, 'support'), entries: ['forged-sandboxd.ts'] }
    const code = { folder: await bundleProgram(source, folder), entry: 'forged-sandboxd.ts' }
    runner = await ManagedSandboxes.open({ executable: process.execPath, code })
    control = await startControl({ runner })
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await runner[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  test.each(names)('passes none of its text to an HTTP client: %s (threat T8) (threat T46)', async (name) => {
    const { port } = control
    await using tcp = await openRawTcp({ port })
    const path = `/attach?sandbox=false&cmd=${name}`
    await tcp.write(upgradeRequest({ port, path, headers }))
    const answer = await readUntil(tcp, '}}')
    expect(answer).toMatch(/^HTTP\/1\.1 (409|502) /)
    const body: unknown = JSON.parse(answer.slice(answer.indexOf('{')))
    const error = Object(Reflect.get(Object(body), 'error')) as Record<string, unknown>
    expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'request_id'])
    expect(isErrorCode(String(error['code']))).toBe(true)
    // Bytes that a proxy would forward after a 101 are not forwarded.
    await tcp.write('ECHO-ME').catch(() => undefined)
    tcp.endWriting()
    const rest = new TextDecoder().decode((await tcp.read()) ?? new Uint8Array())
    for (const text of [answer, rest]) {
      expect(text).not.toContain(FORGED_TEXT)
      expect(text).not.toContain('ECHO-ME')
    }
  })

  test.each(names)('is an error and a close for the client library: %s (threat T46)', async (name) => {
    const path = `/attach?sandbox=false&cmd=${name}`
    await using socket = await openRawWebSocketOrThrow({
      port: control.port,
      path,
      headers,
      subprotocols: ['sandwire.v1'],
      timeoutMs: 20_000,
    })
    const said: string[] = []
    for await (const { opcode, payload } of socket.frames()) {
      if (opcode === OPCODE.close) break
      said.push(new TextDecoder().decode(payload))
    }
    socket.reset()
    expect(JSON.parse(said[0] ?? '')).toMatchObject({
      type: 'error',
      code: expect.stringMatching(/^(sandbox_unreachable|conflict)$/),
      fatal: true,
    })
    const { frame } = await socket.closed
    expect([4409, 4413]).toContain(frame?.code ?? 0)
    expect([...said, frame?.reason ?? ''].join('\n')).not.toContain(FORGED_TEXT)
  })

  test("leaves none of its text in control's log (threat T46)", () => {
    expect(control.log.filter((line) => line.includes(FORGED_TEXT))).toEqual([])
  })
})
