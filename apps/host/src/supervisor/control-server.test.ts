import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { serveControl } from './control-server.ts'
import { SupervisorLog } from './supervisor-log.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'control-'))
const socket = path.join(folder, 'c.sock')
const calls: string[] = []
const lines: string[] = []
let server: Disposable

beforeAll(() => {
  const target = {
    status: () => ({ epoch: 'e' }),
    claim: () => void calls.push('claim'),
    stop: (reason: string) => void calls.push(`stop ${reason}`),
  }
  const log = new SupervisorLog(
    (line) => lines.push(line),
    () => new Date(0),
  )
  server = serveControl(socket, target, log)
})
afterAll(() => {
  server[Symbol.dispose]()
  expect(existsSync(socket)).toBe(false)
  rmSync(folder, { recursive: true, force: true })
})

const sendRequest = (method: string, route: string, headers = {}): Promise<Response> =>
  fetch(`http://supervisor${route}`, { unix: socket, method, headers })

describe('the control socket', () => {
  test('is accessible to its user only', () => {
    expect(statSync(socket).mode & 0o777).toBe(0o600)
  })

  test('answers its three requests and no others', async () => {
    expect(await (await sendRequest('GET', '/status')).json()).toEqual({ epoch: 'e' })
    for (const route of ['/claim', '/stop']) expect((await sendRequest('POST', route)).ok).toBe(true)
    expect(calls).toEqual(['claim', 'stop requested'])
    for (const [method, route] of [
      ['GET', '/stop'],
      ['POST', '/status'],
      ['POST', '/'],
      ['POST', '/stop/../claim/x'],
    ] as const)
      expect((await sendRequest(method, route)).status).toBe(404)
    expect(calls).toHaveLength(2)
  })

  test('passes a known stop reason', async () => {
    calls.length = 0
    for (const reason of ['idle', 'shutting_down', 'requested', '{"a":1}', ''])
      expect((await sendRequest('POST', `/stop?reason=${encodeURIComponent(reason)}`)).status).toBe(202)
    expect(calls).toEqual([
      'stop idle',
      'stop shutting_down',
      'stop requested',
      'stop requested',
      'stop requested',
    ])
  })

  test('(threat T36) logs a request with its request id, if that is valid', async () => {
    lines.length = 0
    await sendRequest('POST', '/stop', { 'x-request-id': 'r-1' })
    await sendRequest('POST', '/stop', { 'x-request-id': '{"a": 1}' })
    await sendRequest('GET', '/status')
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({ event: 'control', request_id: 'r-1', route: 'POST /stop', status: 202 }),
      expect.not.objectContaining({ request_id: expect.anything() as unknown }),
    ])
  })
})
