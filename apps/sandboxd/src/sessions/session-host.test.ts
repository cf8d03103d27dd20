import { describe, expect, spyOn, test } from 'bun:test'
import {
  DEFAULT_LIMITS,
  decodeServer,
  encode,
  ERRORS,
  type FromServer,
  type ConnectionRights,
  type OutputStream,
  packData,
  type ServerMessage,
} from '@sandwire/protocol'
import { createLog } from '../log.ts'
import type { ProcessEvents, ProcessSpec, RunningProcess } from '../processes/process.ts'
import { SessionHost } from './session-host.ts'
import type { SendOutcome, SessionConnection } from './connections.ts'

/** A process in the test's hand. */
class HandProcess implements RunningProcess {
  readonly pid = 4242
  readonly spec: ProcessSpec
  readonly events: ProcessEvents
  readonly calls: string[] = []
  /** Run inside `resume`, as a process does that held a chunk back. */
  onResume: () => void = () => {}

  constructor(spec: ProcessSpec, events: ProcessEvents) {
    this.spec = spec
    this.events = events
  }

  write(chunk: Uint8Array): void {
    this.calls.push(`write ${chunk.byteLength}`)
    this.events.inputSettled(chunk.byteLength)
  }
  closeInput(): void {
    this.calls.push('closeInput')
  }
  resize(cols: number, rows: number): void {
    this.calls.push(`resize ${cols}x${rows}`)
  }
  signal(name: string): void {
    this.calls.push(`signal ${name}`)
  }
  pause(): void {
    this.calls.push('pause')
  }
  resume(): void {
    this.calls.push('resume')
    this.onResume()
  }
  async terminate(): Promise<void> {
    this.calls.push('terminate')
  }
}

/** A connection that remembers what it was given. */
class FakeConnection implements SessionConnection {
  readonly requestId = 'attach-1'
  readonly received: FromServer<ServerMessage>[] = []
  outcome: SendOutcome = 'sent'
  closed: number | undefined
  isTerminated = false

  send(data: string | Uint8Array): SendOutcome {
    const frame = decodeServer(data)
    if (frame === undefined) throw new Error('undecodable frame')
    if (this.outcome !== 'lost') this.received.push(frame)
    return this.outcome
  }
  sendOutput(stream: OutputStream, bytes: Uint8Array): SendOutcome {
    return this.send(packData(stream, bytes))
  }
  close(code: number): void {
    this.closed = code
  }
  terminate(): void {
    this.isTerminated = true
  }
  inputSettled(): void {}

  /** Output bytes so far, as text. */
  get text(): string {
    return this.received
      .map((frame) => (frame.kind === 'data' ? new TextDecoder().decode(frame.payload) : ''))
      .join('')
  }
}

const HELLO_MESSAGE = {
  type: 'hello',
  version: 1,
  identity: '0'.repeat(32),
  resuming: false,
  received: 0,
  window: 1_000_000,
  cols: 80,
  rows: 24,
} as const
const HELLO = encode(HELLO_MESSAGE)
const RIGHTS = { principal: 'p', authority: 'driver', dialect: 'v1', take: false } as const
const START = { env: {}, cols: 80, rows: 24 }

function setUp(windowBytes = 8, rights: ConnectionRights = RIGHTS) {
  const processes: HandProcess[] = []
  const gone: boolean[] = []
  const refused: string[] = []
  const host = new SessionHost(
    {
      id: 's1',
      mode: 'pipe',
      overflow: 'block',
      keepSeconds: 60,
      limits: { ...DEFAULT_LIMITS, window: { startBytes: windowBytes, minBytes: 1, maxBytes: windowBytes } },
    },
    {
      argv: ['cat'],
      cwd: '/',
      baseEnv: { PATH: '/bin' },
      isPinned: false,
      isTemplate: false,
      requestId: 'r1',
    },
    {
      startProcess: (spec, events) => {
        const process = new HandProcess(spec, events)
        processes.push(process)
        return process
      },
      createScreen: () => {
        throw new Error('a pipe has no screen')
      },
      log: createLog(
        () => {},
        () => new Date(0),
      ),
      now: () => performance.now(),
      onExit: () => {},
      onGone: (_, wasStarted) => gone.push(wasStarted),
      onRefused: (requestId, code) => refused.push(`${requestId} ${code}`),
      countOutput: () => {},
      countInput: () => {},
    },
  )
  const link = new FakeConnection()
  host.connected(1, link, rights, START)
  if (rights.dialect === 'v1') host.received(1, HELLO)
  const process = processes[0]
  if (process === undefined) throw new Error('no process')
  return { host, link, process, gone, refused }
}

/** Output of one turn of the event loop is joined, so tests let turns pass. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('SessionHost', () => {
  test('tells which request a connection came by that is refused, and nothing of one that was let in', () => {
    const { host, refused } = setUp()
    const link = new FakeConnection()
    host.connected(2, link, { ...RIGHTS, authority: 'viewer' }, START)
    host.received(2, encode({ ...HELLO_MESSAGE, identity: 'b'.repeat(32), role: 'driver' }))
    expect(link.closed).toBe(ERRORS.forbidden.close)
    host.revoke({})
    expect(refused).toEqual(['attach-1 forbidden'])
  })

  test('starts the process with the base environment and the size of the hello', async () => {
    const { process } = setUp()
    expect(process.spec).toMatchObject({ argv: ['cat'], cwd: '/', cols: 80, rows: 24, mode: 'pipe' })
    expect(process.spec.env).toEqual({ PATH: '/bin', SANDWIRE_SESSION: 's1' })
  })

  test('keeps output in order when resuming the process delivers at once', async () => {
    const { host, link, process } = setUp()
    process.events.output('stdout', bytes('aaaaaaaa'))
    await nextTurn()
    expect(process.calls).toEqual(['pause'])
    process.onResume = () => process.events.output('stdout', bytes('cc'))
    process.events.output('stdout', bytes('bbbb'))
    await nextTurn()
    host.received(1, encode({ type: 'ack', output: 8 }))
    expect(link.text).toBe('aaaaaaaabbbb')
    host.received(1, encode({ type: 'ack', output: 12 }))
    expect(process.calls).toEqual(['pause', 'resume'])
    expect(link.text).toBe('aaaaaaaabbbbcc')
    host.end()
  })

  test('stops sending when the socket is full and goes on when it drains', async () => {
    const { host, link, process } = setUp(1_000)
    link.outcome = 'full'
    process.events.output('stdout', bytes('one'))
    await nextTurn()
    link.outcome = 'sent'
    process.events.output('stdout', bytes('two'))
    await nextTurn()
    expect(link.text).toBe('one')
    host.drained(1)
    expect(link.text).toBe('onetwo')
    host.end()
  })

  test('cuts a connection that lost a frame, so that the client resumes without a hole', async () => {
    const { host, link, process } = setUp(1_000)
    link.outcome = 'lost'
    process.events.output('stdout', bytes('one'))
    await nextTurn()
    expect(link.isTerminated).toBe(true)
    expect(host.session.attachments.attachedCount).toBe(0)
    link.outcome = 'sent'
    process.events.output('stdout', bytes('two'))
    await nextTurn()
    expect(link.text).toBe('')
    const again = new FakeConnection()
    host.connected(2, again, RIGHTS, START)
    host.received(
      2,
      encode({
        type: 'hello',
        version: 1,
        identity: '0'.repeat(32),
        resuming: true,
        received: 0,
        window: 1_000_000,
        cols: 80,
        rows: 24,
      }),
    )
    expect(again.text).toBe('onetwo')
    host.end()
  })

  test('sends the exit after the last byte and is gone when ended', async () => {
    const { host, link, process, gone } = setUp(1_000)
    process.events.output('stdout', bytes('bye'))
    await nextTurn()
    process.events.ended({ code: 3, signal: null, truncated: false })
    const last = link.received.at(-1)
    expect(last).toEqual({
      kind: 'control',
      message: { type: 'exit', code: 3, signal: null, truncated: false, outputEnd: 3 },
    })
    host.received(1, encode({ type: 'ack', output: 3 }))
    expect(link.closed).toBe(1000)
    host.disconnected(1)
    expect(process.calls).not.toContain('terminate')
    host.end()
    expect(gone).toEqual([true])
    expect(process.calls).toContain('terminate')
  })

  test('ends a process that still runs when the session is ended', () => {
    const { host, process } = setUp()
    host.end()
    expect(process.calls).toEqual(['terminate'])
  })
})

test('[A10] a right that lasts longer than a timer can does not end early, nor wake the session again and again', () => {
  using timers = spyOn(globalThis, 'setTimeout')
  const year = 365 * 24 * 60 * 60 * 1000
  const { link } = setUp(8, { ...RIGHTS, dialect: 'plain', reauthorizeMs: performance.now() + year })
  // The timer that was set for a hello rings, and finds nothing to do for a year.
  const [ring] = timers.mock.calls.at(-1) ?? []
  if (typeof ring === 'function') ring()
  expect(timers.mock.calls.at(-1)?.[1]).toBe(2 ** 31 - 1)
  expect(link.closed).toBeUndefined()
})
