import { describe, expect, test } from 'bun:test'
import type { AttachHandle } from '@sandwire/client'
import { parseEscapeKey } from './escape-key.ts'
import { pumpPipe, pumpTyping } from './input-pump.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

function stream(...chunks: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk))
      controller.close()
    },
  })
}

/** The part of a handle that input needs; records the calls. */
function record(role: AttachHandle['role'] = 'driver', write: () => Promise<void> = () => Promise.resolve()) {
  const events: string[] = []
  const handle = {
    role,
    write: (bytes: Uint8Array) => {
      events.push(decoder.decode(bytes))
      return write()
    },
    eof: () => events.push('<eof>'),
  } as unknown as AttachHandle
  return {
    handle,
    events,
    callbacks: { escaped: () => events.push('<escaped>'), refused: () => events.push('<refused>') },
  }
}

describe('pumpPipe', () => {
  test('sends everything, then the end', async () => {
    const { handle, events } = record()
    await pumpPipe(handle, stream('a', 'b'))
    expect(events).toEqual(['a', 'b', '<eof>'])
  })

  test('sends the end of an empty input', async () => {
    const { handle, events } = record()
    await pumpPipe(handle, stream())
    expect(events).toEqual(['<eof>'])
  })

  test('stops reading while the process does not read its input', async () => {
    const { handle, events } = record('driver', () => new Promise(() => {}))
    void pumpPipe(handle, stream('a', 'b'))
    await Bun.sleep(0)
    expect(events).toEqual(['a'])
  })

  test('treats an unreadable stdin as ended', async () => {
    const { handle, events } = record()
    const broken = new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error('EISDIR')) })
    await pumpPipe(handle, broken)
    expect(events).toEqual(['<eof>'])
  })
})

/** A terminal that hangs up. */
function hangingUp(): ReadableStream<Uint8Array> {
  const chunks = [encoder.encode('a')]
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks.shift()
      if (chunk === undefined) throw new Error('EIO')
      controller.enqueue(chunk)
    },
  })
}

describe('pumpTyping', () => {
  test('ends when the terminal hangs up', async () => {
    const { handle, events, callbacks } = record()
    await pumpTyping(handle, hangingUp(), { escape: null, events: callbacks })
    expect(events).toEqual(['a'])
  })

  const escape = parseEscapeKey('^]') ?? null

  test('sends the bytes before the escape key in a chunk and drops the rest', async () => {
    const { handle, events, callbacks } = record()
    await pumpTyping(handle, stream('ls\r', 'exit\x1drm -rf\r', 'more'), { escape, events: callbacks })
    expect(events).toEqual(['ls\r', 'exit', '<escaped>'])
  })

  test('sees the escape key while input waits for the connection', async () => {
    const { handle, events, callbacks } = record('driver', () => new Promise(() => {}))
    await pumpTyping(handle, stream('a', 'b', '\x1d'), { escape, events: callbacks })
    expect(events).toEqual(['a', 'b', '<escaped>'])
  })

  test('sends nothing for a viewer, and reports typed keys but not replies of the terminal', async () => {
    const { handle, events, callbacks } = record('viewer')
    await pumpTyping(handle, stream('\x1b[?1;2c', 'x', '\x1d'), { escape, events: callbacks })
    expect(events).toEqual(['<refused>', '<escaped>'])
  })

  test('detaches a viewer without an escape key with Ctrl+C', async () => {
    const { handle, events, callbacks } = record('viewer')
    await pumpTyping(handle, stream('\x03'), { escape: null, events: callbacks })
    expect(events).toEqual(['<escaped>'])
  })

  test('sends the escape byte when there is no escape key', async () => {
    const { handle, events, callbacks } = record()
    await pumpTyping(handle, stream('a\x1db\x03'), { escape: null, events: callbacks })
    expect(events).toEqual(['a\x1db\x03'])
  })
})
