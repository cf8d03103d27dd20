import { concatBytes } from '@sandwire/bytes'

/** Opcodes of RFC 6455. */
const CONTINUATION = 0x0
const TEXT = 0x1
const BINARY = 0x2
const CLOSE = 0x8
const PING = 0x9
const PONG = 0xa

/** Larger messages are refused, so that a peer cannot make this side buffer without a bound. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
/** Bound of RFC 6455 for control frames. */
const MAX_CONTROL_BYTES = 125

export type WebSocketMessage =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary'; readonly bytes: Uint8Array }

export type WebSocketEvent =
  | WebSocketMessage
  | { readonly kind: 'ping'; readonly bytes: Uint8Array }
  | { readonly kind: 'pong' }
  | { readonly kind: 'close'; readonly code: number | undefined; readonly reason: string }

/** A peer that violates RFC 6455, or exceeds a bound. */
export class WebSocketProtocolError extends Error {
  override readonly name = 'WebSocketProtocolError'
}

function fail(problem: string): never {
  throw new WebSocketProtocolError(problem)
}

interface Header {
  readonly opcode: number
  readonly isFinal: boolean
  readonly headerBytes: number
  readonly payloadBytes: number
}

/** Reads the header of a server's frame; undefined while it is incomplete. */
function decodeHeader(bytes: Uint8Array): Header | undefined {
  const [first, second] = bytes
  if (first === undefined || second === undefined) return undefined
  if ((first & 0x70) !== 0) fail('reserved bits are set')
  if ((second & 0x80) !== 0) fail('a frame of the server is masked')
  const short = second & 0x7f
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
  if (bytes.length < 2 + lengthBytes) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const payloadBytes =
    lengthBytes === 0 ? short : lengthBytes === 2 ? view.getUint16(2) : Number(view.getBigUint64(2))
  const opcode = first & 0x0f
  const isFinal = (first & 0x80) !== 0
  const isControl = opcode >= CLOSE
  if (isControl && (!isFinal || payloadBytes > MAX_CONTROL_BYTES)) fail('a control frame is too long')
  if (payloadBytes > MAX_MESSAGE_BYTES) fail('a message is too large')
  return { opcode, isFinal, headerBytes: 2 + lengthBytes, payloadBytes }
}

function decodeClose(payload: Uint8Array): WebSocketEvent {
  if (payload.length < 2) return { kind: 'close', code: undefined, reason: '' }
  const code = new DataView(payload.buffer, payload.byteOffset).getUint16(0)
  return { kind: 'close', code, reason: new TextDecoder().decode(payload.subarray(2)) }
}

/** Decodes the frames of a server from bytes that may be split anywhere. Throws `WebSocketProtocolError`. */
export class FrameDecoder {
  #chunks: Uint8Array[] = []
  #bufferedBytes = 0
  /** Bytes that the next frame needs; keeps the cost of long frames linear. */
  #neededBytes = 2
  /** Parts of a fragmented message. */
  #parts: Uint8Array[] = []
  #partBytes = 0
  #partOpcode: number | undefined

  push(bytes: Uint8Array): WebSocketEvent[] {
    this.#chunks.push(bytes)
    this.#bufferedBytes += bytes.length
    if (this.#bufferedBytes < this.#neededBytes) return []
    let rest: Uint8Array = this.#chunks.length === 1 ? bytes : concatBytes(this.#chunks)
    const events: WebSocketEvent[] = []
    for (;;) {
      const header = decodeHeader(rest)
      const frameBytes = header === undefined ? rest.length + 1 : header.headerBytes + header.payloadBytes
      if (header === undefined || rest.length < frameBytes) {
        this.#chunks = [rest]
        this.#bufferedBytes = rest.length
        this.#neededBytes = frameBytes
        return events
      }
      const event = this.#decode(header, rest.subarray(header.headerBytes, frameBytes))
      if (event !== undefined) events.push(event)
      rest = rest.subarray(frameBytes)
    }
  }

  #decode({ opcode, isFinal }: Header, payload: Uint8Array): WebSocketEvent | undefined {
    switch (opcode) {
      case CLOSE:
        return decodeClose(payload)
      case PING:
        return { kind: 'ping', bytes: payload }
      case PONG:
        return { kind: 'pong' }
      case TEXT:
      case BINARY:
        if (this.#partOpcode !== undefined) fail('a message begins within another')
        if (isFinal) return toMessage(opcode, payload)
        this.#partOpcode = opcode
        this.#add(payload)
        return undefined
      case CONTINUATION:
        return this.#continue(isFinal, payload)
      default:
        return fail('an opcode is unknown')
    }
  }

  #continue(isFinal: boolean, payload: Uint8Array): WebSocketEvent | undefined {
    const opcode = this.#partOpcode
    if (opcode === undefined) fail('a message continues that did not begin')
    this.#add(payload)
    if (!isFinal) return undefined
    const whole = concatBytes(this.#parts)
    this.#parts = []
    this.#partBytes = 0
    this.#partOpcode = undefined
    return toMessage(opcode, whole)
  }

  #add(payload: Uint8Array): void {
    this.#partBytes += payload.length
    if (this.#partBytes > MAX_MESSAGE_BYTES) fail('a message is too large')
    this.#parts.push(payload)
  }
}

function toMessage(opcode: number, payload: Uint8Array): WebSocketMessage {
  if (opcode === BINARY) return { kind: 'binary', bytes: payload }
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload) }
  } catch {
    return fail('a text message is not UTF-8')
  }
}

/** One frame of a client, masked with four random bytes. */
function encodeFrame(opcode: number, payload: Uint8Array, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  const { length } = payload
  const lengthBytes = length < 126 ? 0 : length < 0x1_0000 ? 2 : 8
  const frame = new Uint8Array(2 + lengthBytes + 4 + length)
  const view = new DataView(frame.buffer)
  frame[0] = 0x80 | opcode
  frame[1] = 0x80 | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127)
  if (lengthBytes === 2) view.setUint16(2, length)
  if (lengthBytes === 8) view.setBigUint64(2, BigInt(length))
  const start = 2 + lengthBytes + 4
  frame.set(mask, start - 4)
  for (let index = 0; index < length; index++)
    frame[start + index] = (payload[index] ?? 0) ^ (mask[index & 3] ?? 0)
  return frame
}

export function encodeMessage(message: string | Uint8Array, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof message === 'string'
    ? encodeFrame(TEXT, new TextEncoder().encode(message), mask)
    : encodeFrame(BINARY, message, mask)
}

export function encodePing(mask: Uint8Array): Uint8Array<ArrayBuffer> {
  return encodeFrame(PING, new Uint8Array(0), mask)
}

export function encodePong(payload: Uint8Array, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  return encodeFrame(PONG, payload, mask)
}

export function encodeClose(code: number, reason: string, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(reason).subarray(0, MAX_CONTROL_BYTES - 2)
  return encodeFrame(CLOSE, concatBytes([new Uint8Array([code >> 8, code & 0xff]), text]), mask)
}
