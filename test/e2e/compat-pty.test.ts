import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  eventually,
  OPCODE,
  openRawWebSocket,
  openRawWebSocketOrThrow,
  PtyClient,
  TextClient,
} from '@sandwire/testing'
import { Attached } from './support/attached.ts'
import { traceMemory } from './support/memory.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

const MIB = 1024 * 1024
const PATH = '/envelopes/pty'

let sandboxd: RunningSandboxd
beforeAll(async () => {
  sandboxd = await startSandboxd({ args: ['--shell', '/bin/sh'], env: { HOME: '/nonexistent' } })
})
afterAll(() => sandboxd.stop())

const run = (script: string): string =>
  `?${new URLSearchParams([
    ['cmd', 'sh'],
    ['arg', '-c'],
    ['arg', script],
  ])}`
const open = (query: string): PtyClient => new PtyClient(sandboxd, `${PATH}${query}`)
const typesOf = ({ messages }: PtyClient): string[] => messages.map(({ type }) => type)

interface View {
  readonly state: string
  readonly output: { readonly end: number }
}
async function viewOf(session: string): Promise<View> {
  return (await (await sandboxd.fetch(`/sessions/${session}`)).json()) as View
}

describe('the compat terminal endpoint', () => {
  test('starts the shell, accepts input and sends its exit last', async () => {
    await using client = open('')
    const session = await client.name()
    client.type('echo "[$((40 + 2))]" $TERM\n')
    await client.waitForOutput('[42] xterm-256color')
    client.send('exit 3\n')
    expect(await client.first('exit')).toEqual({ type: 'exit', code: 3, session_id: session })
    expect(typesOf(client).at(0)).toBe('session')
    expect(typesOf(client).at(-1)).toBe('exit')
    expect(new Set(typesOf(client).slice(1, -1))).toEqual(new Set(['output']))
    for (const { type, session_id: name } of client.messages) expect([type, name]).toEqual([type, session])
  })

  test('answers pings, also after the exit, and lets the client close', async () => {
    await using client = open(run('exit 0'))
    await client.first('exit')
    client.send({ type: 'ping' })
    await client.first('pong')
    expect(client.close).toBeUndefined()
  })

  test('pings its client in the requested interval', async () => {
    const { port, headers } = sandboxd
    await using socket = await openRawWebSocketOrThrow({ port, headers, path: `${PATH}${run('cat')}&ping=1` })
    for (;;) {
      const { opcode } = await socket.nextFrame()
      if (opcode === OPCODE.ping) return
    }
  })

  test('gives the terminal the last requested size', async () => {
    await using client = open(run('while read line; do stty size; done'))
    await client.name()
    client.send({ type: 'resize', cols: 100, rows: 31 })
    client.send({ type: 'resize', cols: 132, rows: 50 })
    client.type('\n')
    await client.waitForOutput('50 132')
    client.send({ type: 'resize' })
    client.type('\n')
    await client.waitForOutput('24 80')
  })

  test('sends a second client the earlier output; both type, and either resizes', async () => {
    await using first = open(run('echo early; while read line; do echo "got $line $(stty size)"; done'))
    const session = await first.name()
    await first.waitForOutput('early')
    first.send({ type: 'resize', cols: 90, rows: 20 })
    await using second = open(`?session=${session}`)
    expect(await second.first('history')).toEqual({ type: 'history', data: 'early\r\n' })
    expect(typesOf(second).slice(0, 2)).toEqual(['session', 'history'])
    second.type('two\n')
    await Promise.all([first.waitForOutput('got two 20 90'), second.waitForOutput('got two 20 90')])
    second.send({ type: 'resize', cols: 70, rows: 15 })
    first.type('one\n')
    await Promise.all([first.waitForOutput('got one 15 70'), second.waitForOutput('got one 15 70')])
    await second.disconnect()
    first.send({ type: 'resize', cols: 60, rows: 10 })
    first.type('alone\n')
    await first.waitForOutput('got alone 10 60')
  })

  test('takes neither the size nor the lease from a sandwire.v1 driver', async () => {
    await using driver = new Attached(sandboxd, { cmd: 'sh', mode: 'pty' }, { cols: 111, rows: 44 })
    await eventually(() => driver.session, { what: 'a session' })
    await using client = open(`?session=${driver.session}`)
    await client.name()
    client.send({ type: 'resize', cols: 70, rows: 15 })
    client.type('stty size\n')
    await client.waitForOutput('44 111')
  })

  test('rejoins the session after its connection closed', async () => {
    const before = open(run('echo here; cat'))
    const session = await before.name()
    await before.waitForOutput('here')
    await before.disconnect()
    await using after = open(`?session=${session}`)
    expect((await after.first('history'))['data']).toBe('here\r\n')
    after.type('still\n')
    await after.waitForOutput('still')
  })

  test('bounds the replayed output, which begins at a line start', async () => {
    await using first = open(run('seq -f "line %010.0f" 1 30000; echo done; cat'))
    const session = await first.name()
    await first.waitForOutput('done')
    await using late = open(`?session=${session}`)
    const history = String((await late.first('history'))['data'])
    expect(history).toMatch(/^line \d{10}\r\n/)
    expect(history).toEndWith('done\r\n')
    expect(Buffer.byteLength(history)).toBeGreaterThan(199_900)
    expect(Buffer.byteLength(history)).toBeLessThanOrEqual(200_000)
  })

  test('never splits a character that a process writes byte by byte', async () => {
    await Bun.write(
      join(sandboxd.workspace, 'slow.sh'),
      String.raw`for byte in 342 202 254 360 237 230 200; do printf "\\$byte"; read line; done; printf '\377!'`,
    )
    await using client = open('?cmd=sh&arg=-c&arg=stty+-echo%3B+exec+sh+slow.sh')
    for (let line = 0; line < 7; line += 1) {
      // Each byte is read before the next one is requested.
      await eventually(async () => (await viewOf(await client.name())).output.end > line, {
        what: 'a byte',
      })
      client.type('\n')
    }
    await client.first('exit')
    expect(client.text('output')).toBe('€😀\ufffd!')
    expect(client.messages.filter(({ type }) => type === 'output').map(({ data }) => data)).toContain('€')
  })

  test('accepts a megabyte at once', async () => {
    await using client = open(run('stty raw -echo; echo ready; head -c 1000000 | md5sum'))
    await client.waitForOutput('ready')
    const text = '0123456789'.repeat(100_000)
    client.type(text)
    await client.waitForOutput(new Bun.CryptoHasher('md5').update(text).digest('hex'))
  })

  test('applies backpressure to a flood while the client does not read, and loses nothing', async () => {
    const bytes = 128 * MIB
    const query = run(`stty raw; head -c ${bytes} /dev/zero | tr '\\0' x; echo end`)
    const handshake = await openRawWebSocket({
      port: sandboxd.port,
      path: `${PATH}${query}`,
      headers: sandboxd.headers,
    })
    if (handshake.kind !== 'open') throw new Error('refused')
    await using socket = handshake.socket
    const decode = (payload: Uint8Array): Record<string, unknown> =>
      JSON.parse(new TextDecoder().decode(payload)) as Record<string, unknown>
    const session = String(decode((await socket.nextFrame()).payload)['session_id'])
    // At most the client's buffer, the kernel's buffers and the window are in flight.
    const memory = await traceMemory(sandboxd.pid, 2_000)
    expect((await viewOf(session)).output.end).toBeLessThan(bytes / 2)
    expect(memory.highest - memory.first).toBeLessThan(bytes / 2)
    let seen = 0
    for (;;) {
      const message = decode((await socket.nextFrame()).payload)
      if (message['type'] === 'exit') break
      seen += String(message['data']).length
    }
    expect(seen).toBe(bytes + 'end\n'.length)
  })

  test('reports only that a session was not found, for every cause', async () => {
    await using pipe = new Attached(sandboxd, { cmd: 'cat', mode: 'pipe' })
    await eventually(() => pipe.session, { what: 'a session' })
    for (const session of ['never', pipe.session]) {
      await using client = open(`?session=${session}`)
      expect(await client.closed()).toEqual({ code: 4001, reason: 'session_not_found' })
      expect(client.messages).toEqual([{ type: 'session_not_found' }])
    }
  })

  test('reports an exit once, or on every request that includes ended sessions', async () => {
    const first = open(run('echo bye; read line; exit 4'))
    const session = await first.name()
    await first.waitForOutput('bye')
    await first.disconnect()
    await sandboxd.fetch(`/sessions/${session}/signal`, { method: 'POST', body: '{"signal":"SIGKILL"}' })
    await eventually(async () => (await viewOf(session)).state === 'exited', { what: 'the end' })
    const ended = async (query: string): Promise<string[]> => {
      await using client = open(`?session=${session}${query}`)
      await eventually(() => typesOf(client).some((type) => /exit|not_found/.test(type)), {
        what: 'an end',
      })
      return typesOf(client)
    }
    expect(await ended('&ended=0')).toEqual(['session', 'history', 'exit'])
    expect(await ended('&ended=0')).toEqual(['session_not_found'])
    expect(await ended('')).toEqual(['session', 'history', 'exit'])
  })

  test('sends the exit when its session is deleted', async () => {
    await using client = open(run('cat'))
    await sandboxd.fetch(`/sessions/${await client.name()}`, { method: 'DELETE' })
    await client.first('exit')
  })

  test('refuses an invalid parameter with a message, and a message over the limit', async () => {
    await using wrong = open('?ended=2')
    expect(await wrong.closed()).toEqual({ code: 4004, reason: 'bad_request' })
    expect(wrong.text('error')).toBe('Cannot use parameter "ended": expected 0 or 1')
    await using large = open(run('cat'))
    await large.name()
    large.type('x'.repeat(2 * MIB))
    await large.closed()
  })
})

test('a stopping sandboxd notifies compat terminals, running or ended, and closes them', async () => {
  const other = await startSandboxd({ args: ['--shell', '/bin/sh', '--max-sessions', '2'] })
  const running = new PtyClient(
    other,
    `${PATH}${run('trap "echo bye; exit 6" HUP TERM; echo up; while :; do sleep 0.1; done')}`,
  )
  const ended = new PtyClient(other, `${PATH}${run('exit 1')}`)
  await Promise.all([running.waitForOutput('up'), ended.first('exit')])
  const third = new PtyClient(other, PATH)
  expect(await third.closed()).toEqual({ code: 4004, reason: 'too_many_sessions' })
  expect(third.text('error')).toStartWith('Cannot start a process: 2 sessions are running')
  expect(await other.stop()).toEqual({ code: 0, signal: null })
  expect(await Promise.all([running.closed(), ended.closed()])).toEqual([
    { code: 1000, reason: '' },
    { code: 1000, reason: '' },
  ])
  expect(running.messages.at(-1)).toMatchObject({ type: 'exit', code: 6 })
  expect(running.text('output')).toEndWith('bye\r\n')
  for (const client of [running, ended]) expect(client.text('error')).toStartWith('The sandbox is stopping')
})

describe('the text terminal endpoint', () => {
  const TEXT = '/envelopes/text'
  const openText = (session: string, query = ''): TextClient =>
    new TextClient(sandboxd, `${TEXT}?session=${session}${query}`)
  /** Starts a session without attaching to it. */
  const begin = async (script: string, mode = 'pty'): Promise<string> => {
    const createId = crypto.randomUUID().replaceAll('-', '')
    const body = JSON.stringify({ cmd: 'sh', args: ['-c', script], createId, mode })
    const request = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    return ((await (await sandboxd.fetch('/sessions', request)).json()) as { id: string }).id
  }

  test('[Y1][Y3] draws the screen, then what is typed, as the driver', async () => {
    const session = await begin(
      'stty -echo; echo ready; while read line; do echo "got $line $(stty size)"; done',
    )
    await using viewer = openText(session, '&role=viewer')
    await viewer.waitFor('ready')
    expect(viewer.text).toStartWith('\u001bc')
    viewer.type('never\n')
    await viewer.waitFor('\u0007')
    await using client = openText(session)
    await client.waitFor('ready')
    client.type('one\n')
    await client.waitFor('got one')
    client.type(new TextEncoder().encode('two\n'))
    await Promise.all([client.waitFor('got two'), viewer.waitFor('got two')])
    expect(client.text).not.toContain('never')
    await using taking = openText(session, '&cols=90&rows=20&take=1')
    await taking.waitFor('got two')
    taking.type('three\n')
    await taking.waitFor('got three 20 90')
  })

  test('[Y4] closes with the exit status after the last output', async () => {
    await using client = openText(await begin('read line; printf "last 😀"; exit 7'))
    await client.waitFor('\u001bc')
    client.type('\n')
    expect(await client.closed()).toEqual({ code: 1000, reason: 'exit 7' })
    expect(client.text).toEndWith('last 😀')
  })

  test('[Y6] refuses a session without a terminal, and starts none', async () => {
    await using pipe = openText(await begin('cat', 'pipe'))
    expect(await pipe.closed()).toMatchObject({ reason: 'needs_v1' })
    await using missing = openText('nothing')
    expect(await missing.closed()).toMatchObject({ reason: 'session_not_found' })
    expect(missing.text).toMatch(/^\r\n\[.+\]\r\n$/)
    const { sessions: before } = (await (await sandboxd.fetch('/sessions')).json()) as { sessions: unknown[] }
    await using starting = new TextClient(sandboxd, `${TEXT}?cmd=cat`)
    expect(await starting.closed()).toMatchObject({ reason: 'bad_request' })
    const { sessions } = (await (await sandboxd.fetch('/sessions')).json()) as { sessions: unknown[] }
    expect(sessions).toHaveLength(before.length)
  })

  test('[Y5] sends a driver that did not read the screen, and pauses nothing', async () => {
    const session = await begin('read line; seq 1 3000000; echo "the $((40 + 2))nd line"; cat')
    const { port, headers } = sandboxd
    await using slow = await openRawWebSocketOrThrow({ port, headers, path: `${TEXT}?session=${session}` })
    slow.pause()
    await slow.sendFrame({ opcode: OPCODE.text, payload: new TextEncoder().encode('\n') })
    await eventually(async () => (await viewOf(session)).output.end > 22 * MIB, {
      what: 'all lines',
    })
    slow.resume()
    let received = 0
    for (let text = ''; !text.includes('the 42nd line');) {
      const { payload } = await slow.nextFrame()
      received += payload.byteLength
      text = text.slice(-20) + new TextDecoder().decode(payload)
    }
    // What the kernel had taken before the socket was full.
    expect(received).toBeLessThan(11 * MIB)
  })
})
