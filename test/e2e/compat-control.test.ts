import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, PtyClient } from '@sandwire/testing'
import { type RunningHost, startHost } from './support/control.ts'

let host: RunningHost
beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

const open = (query: Readonly<Record<string, string>> = {}): PtyClient =>
  new PtyClient(host, `/ws/pty?${new URLSearchParams(query)}`)

describe('terminals of the compat API, through control', () => {
  test("rejoin their session by the client's id and by the session token", async () => {
    const session_id = crypto.randomUUID()
    const before = open({ session_id })
    const token = await eventually(() => before.messages.find(({ type }) => type === 'session'), {
      what: 'a session in a new sandbox',
    })
    expect(token['session_id']).toMatch(/^swt1\./)
    before.type('echo remember\n')
    await before.waitForOutput('remember\r\n')
    await before.disconnect()
    for (const name of [session_id, String(token['session_id'])]) {
      await using again = open({ session_id: name, resume: '1' })
      expect((await again.first('history'))['data']).toContain('remember')
    }
    await using unknown = open({ session_id: crypto.randomUUID(), resume: '1' })
    expect(await unknown.closed()).toEqual({ code: 4001, reason: 'session_not_found' })
    expect(unknown.messages).toEqual([{ type: 'session_not_found' }])
  })

  test('receive every character of a flood in order, then the exit', async () => {
    await using client = open()
    await client.name()
    // Characters of every UTF-8 length, in lines that do not align with frames.
    client.type('stty -echo; seq -f "%.0f-ä€😀" 1 200000; exit 7\n')
    await eventually(() => client.messages.some(({ type }) => type === 'exit'), { what: 'the end' })
    expect(client.messages.at(-1)).toMatchObject({ type: 'exit', code: 7 })
    const text = client.text('output')
    expect(text).not.toContain('\ufffd')
    const numbers = [...text.matchAll(/(\d+)-ä€😀\r\n/g)].map((match) => Number(match[1]))
    expect(numbers).toHaveLength(200_000)
    expect(numbers.every((number, index) => number === index + 1)).toBe(true)
  })

  test('are refused with a message that the front end can read', async () => {
    await using unknown = open({ provider: 'claude' })
    expect(await unknown.closed()).toEqual({
      code: 4003,
      reason: "Unknown provider: claude. Available: ['shell']",
    })
    await using page = new PtyClient(
      { port: host.port, headers: { ...host.headers, origin: 'https://evil.example' } },
      '/ws/pty',
    )
    await page.closed()
    expect(page.hasOpened).toBe(false)
  })
})
