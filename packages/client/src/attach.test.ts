import { describe, expect, jest, spyOn, test } from 'bun:test'
import { encode, packData, SandwireError, type ServerMessage } from '@sandwire/protocol'
import { eventually, rejectionOf } from '@sandwire/testing'
import { attach } from './attach.ts'
import type { AttachOptions } from './attach-options.ts'
import type { Socket, SocketEvents, SocketRequest } from './socket.ts'

const WELCOME = {
  type: 'welcome',
  version: 1,
  session: 's1',
  attachment: 'a1',
  role: 'driver',
  authority: 'driver',
  epoch: 1,
  mode: 'pty',
  output: 0,
  input: { at: 0, seq: 0 },
  inputWindow: 1000,
  keepSeconds: 60,
  cols: 80,
  rows: 24,
} as const

type Opened = { request: SocketRequest; events: SocketEvents; sent: unknown[]; closes: number[] }

/** An attachment whose sockets the test controls. */
function open(options: Partial<AttachOptions> = {}) {
  const sockets: Opened[] = []
  const handle = attach({
    url: 'http://h',
    request: { cmd: 'x' },
    onOutput: () => {},
    openSocket: (request, events) => {
      const opened: Opened = { request, events, sent: [], closes: [] }
      sockets.push(opened)
      return {
        send: (data) => opened.sent.push(typeof data === 'string' ? JSON.parse(data) : data),
        close: (code) => opened.closes.push(code),
      }
    },
    ...options,
  })
  const socket = (index: number) => eventually(() => sockets[index], { what: `socket ${index}` })
  const say = (to: Opened, message: ServerMessage) => to.events.message(encode(message))
  const welcomed = async () => {
    const first = await socket(0)
    first.events.opened()
    say(first, WELCOME)
    say(first, { type: 'ack', input: 0, seq: 0 })
    return first
  }
  return { handle, socket, say, welcomed }
}

/** Lets pending promise callbacks run. */
async function turns(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await Promise.resolve()
}

const EXIT = { type: 'exit', code: 3, signal: null, outputEnd: 4, truncated: false } as const

describe('attach', () => {
  /** A server that refuses every credential. */
  const openRefusing = () =>
    Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 }),
    })

  test('renews refused credentials once per connection', async () => {
    using server = openRefusing()
    let renewals = 0
    const { handle, socket } = open({
      url: server.url,
      credentials: () => Promise.resolve({ headers: { authorization: `Bearer ${renewals}` } }),
      renewCredentials: () => Promise.resolve(++renewals > 0),
    })
    ;(await socket(0)).events.closed(1006, '')
    const second = await socket(1)
    expect(second.request.headers).toEqual({ authorization: 'Bearer 1' })
    second.events.closed(1006, '')
    expect(await rejectionOf(handle.exit)).toMatchObject({ code: 'unauthorized', message: 'no' })
    expect(renewals).toBe(1)
  })

  test('fails with the error of renewCredentials', async () => {
    using server = openRefusing()
    const over = new SandwireError('unauthorized', 'Signed out')
    const { handle, socket } = open({ url: server.url, renewCredentials: () => Promise.reject(over) })
    ;(await socket(0)).events.closed(1006, '')
    expect(await rejectionOf(handle.exit)).toMatchObject({ code: 'unauthorized', message: 'Signed out' })
  })

  test('requests credentials before each connection and sends them with the upgrade', async () => {
    let minted = 0
    const credentials = () =>
      Promise.resolve({ headers: { authorization: `Bearer ${++minted}` }, protocols: ['ticket'] })
    const { socket, welcomed } = open({ credentials })
    const first = await welcomed()
    first.events.closed(1006, '')
    const second = await socket(1)
    expect(first.request.headers).toEqual({ authorization: 'Bearer 1' })
    expect(second.request.headers).toEqual({ authorization: 'Bearer 2' })
    expect(second.request.protocols).toEqual(['sandwire.v1', 'ticket'])
    expect(first.request.url.searchParams.get('session')).toBeNull()
    expect(second.request.url.searchParams.get('session')).toBe('s1')
  })

  test('has the session details from the first welcome on', async () => {
    const { handle, welcomed } = open()
    expect(handle.details).toBeUndefined()
    const seen: unknown[] = []
    handle.status.subscribe((status) =>
      seen.push([status.kind, handle.details?.mode, handle.details?.keepSeconds]),
    )
    await welcomed()
    expect(seen).toEqual([['attached', 'pty', 60]])
  })

  test('resolves the exit only after the last byte is consumed', async () => {
    const consumed = Promise.withResolvers<void>()
    const { handle, welcomed, say } = open({ onOutput: () => consumed.promise })
    const socket = await welcomed()
    socket.events.message(packData('stdout', new TextEncoder().encode('last')))
    say(socket, EXIT)
    await Bun.sleep(0)
    expect(handle.status.get().kind).toBe('attached')
    consumed.resolve()
    expect(await handle.exit).toEqual(EXIT)
  })

  test('counts output as consumed when the consumer calls done, with acknowledge "manual"', async () => {
    const dones: (() => void)[] = []
    const { handle, welcomed, say } = open({
      acknowledge: 'manual',
      onOutput: (_stream, _bytes, done) => void dones.push(done),
    })
    const socket = await welcomed()
    socket.events.message(packData('stdout', new TextEncoder().encode('last')))
    say(socket, EXIT)
    expect(handle.status.get().kind).toBe('attached')
    dones[0]?.()
    expect(await handle.exit).toEqual(EXIT)
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])('counts output as consumed when the consumer %s, so that the stream continues', async (_, onOutput) => {
    const errors: unknown[] = []
    const { handle, welcomed, say } = open({ onOutput, onCallbackError: (error) => errors.push(error) })
    const first = await welcomed()
    first.events.message(packData('stdout', new TextEncoder().encode('last')))
    say(first, EXIT)
    expect((await handle.exit).code).toBe(3)
    expect(errors).toEqual([new Error('no')])
  })

  test('continues when callbacks and listeners throw, and reports the errors', async () => {
    const errors: unknown[] = []
    const fail = (what: string) => () => {
      throw new Error(what)
    }
    const { handle, welcomed, say } = open({
      onGap: fail('gap'),
      onResized: fail('resized'),
      onWarning: fail('warning'),
      onCallbackError: (error) => errors.push(error),
    })
    const seen: string[] = []
    handle.status.subscribe(fail('status'))
    handle.status.subscribe((status) => seen.push(status.kind))
    const first = await welcomed()
    say(first, { type: 'gap', from: 0, to: 4 })
    say(first, { type: 'error', code: 'line_too_long', message: 'long', fatal: false })
    say(first, { type: 'resized', at: 4, cols: 90, rows: 30 })
    say(first, EXIT)
    expect((await handle.exit).code).toBe(3)
    expect(seen).toEqual(['attached', 'exited'])
    expect(errors.map(String).toSorted()).toEqual(
      ['gap', 'resized', 'status', 'status', 'warning'].map((what) => `Error: ${what}`),
    )
  })

  test.each(['not an address', 'localhost:8787', 'ftp://h', ''])(
    'fails at once with bad_request for the address %j',
    async (url) => {
      const { handle } = open({ url })
      expect(await rejectionOf(handle.exit)).toMatchObject({ code: 'bad_request' })
      expect(handle.status.get().kind).toBe('failed')
    },
  )

  test('opens no connection when it was detached while credentials were requested', async () => {
    jest.useFakeTimers()
    try {
      const { promise, resolve } = Promise.withResolvers<object>()
      let opened = 0
      const openSocket = (): Socket => {
        opened += 1
        return { send: () => undefined, close: () => undefined }
      }
      const { handle } = open({ connectForMs: 60_000, credentials: () => promise, openSocket })
      await turns()
      jest.advanceTimersByTime(15_001)
      expect(handle.status.get().kind).toBe('reconnecting')
      resolve({})
      await turns()
      expect(opened).toBe(0)
      handle.detach()
    } finally {
      jest.useRealTimers()
    }
  })

  test('removes its abort listener when it ends', async () => {
    const controller = new AbortController()
    const removed = spyOn(controller.signal, 'removeEventListener')
    const { handle } = open({ signal: controller.signal })
    handle.detach()
    expect(removed).toHaveBeenCalledTimes(1)
  })

  test('performs effects of nested calls after the current ones', async () => {
    // A consumer that detaches inside a callback must not let the goodbye overtake frames of the same turn.
    const { handle, welcomed, say } = open({ onInputLost: () => handle.detach() })
    const socket = await welcomed()
    void handle.write(new Uint8Array(2000))
    say(socket, { type: 'role', role: 'viewer', epoch: 2, input: { at: 0, seq: 0 } })
    const types = socket.sent.map((frame) =>
      frame instanceof Uint8Array ? 'bytes' : (frame as { type: string }).type,
    )
    expect(types.indexOf('roleSeen')).toBeLessThan(types.indexOf('detach'))
  })

  test('write waits while the process reads no input, and returns when the attachment ends', async () => {
    const { handle, welcomed, say } = open()
    const socket = await welcomed()
    await handle.write(new Uint8Array(1024 * 1024))
    const events: string[] = []
    const second = handle.write(new Uint8Array(1)).then(() => events.push('written'))
    await Bun.sleep(0)
    expect(events).toEqual([])
    say(socket, { type: 'ack', input: 1000, seq: 0 })
    await second
    await handle.write(new Uint8Array(1024 * 1024))
    const third = handle.write(new Uint8Array(1))
    handle.detach()
    await third
  })

  test('closed resolves after the socket is closed', async () => {
    const { handle, welcomed } = open()
    const socket = await welcomed()
    const events: string[] = []
    void handle.closed.then(() => events.push('closed'))
    handle.detach()
    expect((await rejectionOf(handle.exit)).message).toBe('Detached')
    expect(socket.sent.at(-1)).toEqual({ type: 'detach' })
    expect(socket.closes).toEqual([1000])
    expect(events).toEqual([])
    socket.events.closed(1000, '')
    await handle.closed
  })

  test('closed resolves at once when there is no connection', async () => {
    const { handle } = open()
    handle.detach()
    await handle.closed
  })

  test('reports an error that is received after the welcome', async () => {
    const warnings: string[] = []
    const { handle, welcomed, say } = open({ onWarning: (code) => warnings.push(code) })
    const socket = await welcomed()
    say(socket, { type: 'error', code: 'line_too_long', message: 'x', fatal: false })
    expect(warnings).toEqual(['line_too_long'])
    say(socket, { type: 'error', code: 'session_ended', message: 'Ended', fatal: true })
    expect(await rejectionOf(handle.exit)).toMatchObject({ code: 'session_ended', message: 'Ended' })
  })

  test('fails on a final close code and on an undecodable frame', async () => {
    const gone = open()
    const first = await gone.welcomed()
    first.events.closed(4410, 'session_gone')
    expect(await rejectionOf(gone.handle.exit)).toMatchObject({ code: 'session_gone' })
    const broken = open()
    const second = await broken.welcomed()
    second.events.message('not json')
    expect(await rejectionOf(broken.handle.exit)).toMatchObject({ code: 'bad_frame' })
  })

  test('detaches when its signal is aborted', async () => {
    const controller = new AbortController()
    const { handle, welcomed } = open({ signal: controller.signal })
    await welcomed()
    controller.abort()
    expect(handle.status.get().kind).toBe('detached')
    expect(open({ signal: AbortSignal.abort() }).handle.status.get().kind).toBe('detached')
  })

  test('retries when credentials fail, then reports the error', async () => {
    const { handle } = open({ credentials: () => Promise.reject(new Error('no')), connectForMs: 0 })
    expect(await rejectionOf(handle.exit)).toMatchObject({ code: 'internal' })
  })
})
