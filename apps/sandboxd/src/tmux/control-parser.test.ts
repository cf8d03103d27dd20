import { describe, expect, test } from 'bun:test'
import { type ControlMessage, ControlParser, ControlStreamError, unescapeBytes } from './control-parser.ts'

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Compares as text, because messages contain bytes. */
function describeMessage(message: ControlMessage): string {
  if (message.kind === 'reply')
    return `reply ${message.isError} ${message.lines.map((line) => Buffer.from(line).toString()).join('|')}`
  if (message.kind === 'output') return `output ${message.pane} ${Buffer.from(message.bytes).toString('hex')}`
  return Object.values(message).join(' ')
}

const STREAM = [
  '%begin 1 260 0',
  '%end 1 260 0',
  '%session-changed $0 main',
  '%output %0 a\\033[1m\\134é',
  '%begin 2 266 1',
  'one',
  '%end of a line that is data',
  '%end 2 266 1',
  '%extended-output %12 7 : x : y',
  '%begin 3 267 1',
  'parse error: unknown command: x',
  '%error 3 267 1',
  '%pause %12',
  '%layout-change @0 f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1} f91d,120x40,0,0 *',
  '%exit server exited',
  '',
].join('\n')

const MESSAGES = [
  'notice session-changed $0 main',
  'output %0 611b5b316d5cc3a9',
  'reply false one|%end of a line that is data',
  'output %12 78203a2079',
  'reply true parse error: unknown command: x',
  'paused %12',
  'notice layout-change @0 f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1} f91d,120x40,0,0 *',
  'exit server exited',
]

describe('the parser of control mode', () => {
  test('reads replies, output and notices, wherever the stream is split', () => {
    const stream = bytesOf(STREAM)
    for (const size of [1, 2, 3, 7, stream.byteLength]) {
      const parser = new ControlParser()
      const messages: ControlMessage[] = []
      for (let at = 0; at < stream.byteLength; at += size)
        messages.push(...parser.push(stream.slice(at, at + size)))
      expect(messages.map(describeMessage)).toEqual(MESSAGES)
    }
  })

  test('keeps every byte that a pane can write', () => {
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const escaped = [...all].flatMap((byte) =>
      byte < 0x20 || byte === 0x5c ? [...bytesOf(`\\${byte.toString(8).padStart(3, '0')}`)] : [byte],
    )
    expect(unescapeBytes(Uint8Array.from(escaped))).toEqual(all)
  })

  test('refuses a malformed escape', () => {
    expect(() => unescapeBytes(bytesOf('a\\09'))).toThrow(ControlStreamError)
    expect(() => unescapeBytes(bytesOf('a\\01'))).toThrow(ControlStreamError)
  })

  test('ignores what is not a message', () => {
    expect(new ControlParser().push(bytesOf('no message\n'))).toEqual([])
  })
})
