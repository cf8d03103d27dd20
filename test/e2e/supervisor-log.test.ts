import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { eventually } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { MAX_LOG_BYTES } from '../../apps/host/src/supervisor/spec.ts'
import { expectRunning } from './support/sandbox-manager-contract.ts'
import { SandboxManagerFixture } from './support/sandbox-manager-fixture.ts'
import { LAST_LINE } from './support/noisy-sandboxd.ts'

const kind = (await findBubblewrapProblem()) === undefined ? 'bubblewrap' : 'none'

describe('the log of a sandbox', () => {
  test('(threat T36) stays bounded and printable when its sandboxd floods stderr', async () => {
    const code = { folder: path.join(import.meta.dir, 'support'), entry: 'noisy-sandboxd.ts' }
    await using fixture = await SandboxManagerFixture.open('none', { executable: process.execPath, code })
    const spec = fixture.spec()
    await fixture.manager.start(spec)
    const read = (): Promise<string> => fixture.manager.readLog(spec.id, 64 * 1024)
    await eventually(async () => (await read()).includes(LAST_LINE), { what: 'the last line' })
    for (const file of ['log.jsonl', 'log.jsonl.1'])
      expect(statSync(fixture.fileOf(spec.id, file)).size).toBeLessThanOrEqual(MAX_LOG_BYTES)
    const log = await read()
    expect(log).toMatch(/^[\x20-\x7e\n]*$/)
    for (const line of log.trimEnd().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ source: 'sandboxd' })
  })

  test.skipIf(Bun.which('curl') === null)('(threat T22) records the host of a blocked request', async () => {
    await using fixture = await SandboxManagerFixture.open(kind)
    const spec = fixture.spec({ network: { policy: 'allowlist', allow: ['allowed.example'] } })
    await fixture.manager.start(spec)
    const status = await fixture.run(
      spec.id,
      `curl -s -o /dev/null -w '%{http_code}' http://blocked.example/ 2>&1; echo`,
    )
    expect(status).toBe('403\n')
    const lines = (await fixture.manager.readLog(spec.id, 64 * 1024)).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({
        event: 'egress_blocked',
        host: 'blocked.example',
        port: 80,
        source: 'supervisor',
      }),
    )
  })
})

test('(threat T8) authenticates a request after a refused upgrade separately', async () => {
  await using fixture = await SandboxManagerFixture.open(kind)
  const spec = fixture.spec()
  const { address } = expectRunning(await fixture.manager.start(spec))
  const upgrade = [
    'GET /attach?cmd=id HTTP/1.1',
    'Host: localhost',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
    'Authorization: Bearer nonsense',
  ]
  const smuggled = ['GET /metrics HTTP/1.1', 'Host: localhost', 'Connection: close']
  const raw = connect(fixture.socketOf(address))
  raw.write(`${upgrade.join('\r\n')}\r\n\r\n${smuggled.join('\r\n')}\r\n\r\n`)
  let answer = ''
  for await (const bytes of raw) answer += Buffer.from(bytes).toString('latin1')
  const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)
  expect(statuses.length).toBeGreaterThanOrEqual(1)
  expect(new Set(statuses)).toEqual(new Set(['401']))
})
