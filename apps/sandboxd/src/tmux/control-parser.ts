/** A message of tmux's control mode (`tmux -C`). */
export type ControlMessage =
  /** The reply to one command, in the order of the commands. */
  | { readonly kind: 'reply'; readonly isError: boolean; readonly lines: readonly Uint8Array[] }
  /** Bytes that a pane wrote, as written. */
  | { readonly kind: 'output'; readonly pane: string; readonly bytes: Uint8Array }
  /** tmux dropped output of a pane because we read too slowly. */
  | { readonly kind: 'paused'; readonly pane: string }
  | { readonly kind: 'notice'; readonly name: string; readonly text: string }
  /** The client ends: the server was killed, the session ended, or the client was detached. */
  | { readonly kind: 'exit'; readonly reason: string }

const NEWLINE = 0x0a
const BACKSLASH = 0x5c
const PERCENT = 0x25
const SPACE = 0x20
const ZERO = 0x30

/** A reply that is longer is an error: the longest that we ask for is a screen with its history. */
const MAX_REPLY_BYTES = 32 * 1024 * 1024

/** The stream of tmux is malformed, or a reply is too long. */
export class ControlStreamError extends Error {}

interface OpenReply {
  /** What follows `%begin`, and must follow `%end` or `%error`. */
  readonly guard: string
  readonly lines: Uint8Array[]
  /** tmux also replies to commands that we did not send, such as the one that started the client. */
  readonly isOurs: boolean
  bytes: number
}

/** Parses the output of `tmux -C`. It works on bytes, because panes may split UTF-8 anywhere. */
export class ControlParser {
  #partial: Uint8Array[] = []
  #partialBytes = 0
  #reply: OpenReply | undefined

  push(chunk: Uint8Array): ControlMessage[] {
    const messages: ControlMessage[] = []
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      if (end === -1) break
      const message = this.#take(this.#complete(chunk.subarray(from, end)))
      if (message !== undefined) messages.push(message)
      from = end + 1
    }
    if (from < chunk.byteLength) this.#keep(chunk.slice(from))
    return messages
  }

  #keep(rest: Uint8Array): void {
    this.#partial.push(rest)
    this.#partialBytes += rest.byteLength
    if (this.#partialBytes > MAX_REPLY_BYTES) throw new ControlStreamError('A line is too long')
  }

  #complete(end: Uint8Array): Uint8Array {
    if (this.#partial.length === 0) return end
    const line = Buffer.concat([...this.#partial, end])
    this.#partial = []
    this.#partialBytes = 0
    return line
  }

  #take(line: Uint8Array): ControlMessage | undefined {
    if (this.#reply !== undefined) return this.#takeReplyLine(line, this.#reply)
    // Anything else is not part of the protocol, such as what a configuration file prints.
    if (line[0] !== PERCENT) return undefined
    const nameEnd = endOfWord(line, 0)
    const name = textOf(line.subarray(1, nameEnd))
    switch (name) {
      case 'begin': {
        const guard = textOf(line.subarray(nameEnd + 1))
        // The third field is 1 for commands of this client.
        this.#reply = { guard, lines: [], isOurs: guard.split(' ')[2] === '1', bytes: 0 }
        return undefined
      }
      case 'output': {
        const paneEnd = endOfWord(line, nameEnd + 1)
        return outputOf(line, nameEnd, paneEnd, paneEnd + 1)
      }
      case 'extended-output': {
        const paneEnd = endOfWord(line, nameEnd + 1)
        const separator = Buffer.from(line.buffer, line.byteOffset, line.byteLength).indexOf(' : ', paneEnd)
        if (separator === -1) throw new ControlStreamError('Output without data')
        return outputOf(line, nameEnd, paneEnd, separator + 3)
      }
      case 'pause':
        return { kind: 'paused', pane: textOf(line.subarray(nameEnd + 1)) }
      case 'exit':
        return { kind: 'exit', reason: textOf(line.subarray(nameEnd + 1)) }
      default:
        return { kind: 'notice', name, text: textOf(line.subarray(nameEnd + 1)) }
    }
  }

  #takeReplyLine(line: Uint8Array, reply: OpenReply): ControlMessage | undefined {
    const isEnd = hasText(line, `%end ${reply.guard}`)
    if (isEnd || hasText(line, `%error ${reply.guard}`)) {
      this.#reply = undefined
      return reply.isOurs ? { kind: 'reply', isError: !isEnd, lines: reply.lines } : undefined
    }
    reply.bytes += line.byteLength
    if (reply.bytes > MAX_REPLY_BYTES) throw new ControlStreamError('A reply is too long')
    reply.lines.push(line.slice())
    return undefined
  }
}

function outputOf(line: Uint8Array, nameEnd: number, paneEnd: number, dataFrom: number): ControlMessage {
  return {
    kind: 'output',
    pane: textOf(line.subarray(nameEnd + 1, paneEnd)),
    bytes: unescapeBytes(line.subarray(dataFrom)),
  }
}

function endOfWord(line: Uint8Array, from: number): number {
  const end = line.indexOf(SPACE, from)
  return end === -1 ? line.byteLength : end
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}

function hasText(line: Uint8Array, text: string): boolean {
  return line.byteLength === text.length && textOf(line) === text
}

/** Decodes `\ooo`, which tmux writes for bytes below 0x20 and for backslashes. */
export function unescapeBytes(escaped: Uint8Array): Uint8Array {
  const first = escaped.indexOf(BACKSLASH)
  if (first === -1) return escaped.slice()
  const bytes = new Uint8Array(escaped.byteLength)
  bytes.set(escaped.subarray(0, first))
  let length = first
  for (let at = first; at < escaped.byteLength; at += 1) {
    let byte = escaped[at] ?? 0
    if (byte === BACKSLASH) {
      const digits = [escaped[at + 1], escaped[at + 2], escaped[at + 3]].map((digit) => (digit ?? 0) - ZERO)
      if (digits.some((digit) => digit < 0 || digit > 7)) throw new ControlStreamError('Malformed output')
      byte = digits.reduce((value, digit) => value * 8 + digit, 0)
      at += 3
    }
    bytes[length] = byte
    length += 1
  }
  return bytes.subarray(0, length)
}
