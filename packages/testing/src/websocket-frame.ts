/** Frame opcodes of RFC 6455 section 5.2. */
export const OPCODE = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const

/** A frame to send; nothing is validated, so that a test can send invalid frames. */
export interface FrameSpec {
  /** 0 to 15; default binary. */
  readonly opcode?: number
  /** Default true. */
  readonly fin?: boolean
  readonly rsv1?: boolean
  readonly rsv2?: boolean
  readonly rsv3?: boolean
  /** Default true: masked with a fixed key; bytes are the key, false sends the payload unmasked. */
  readonly mask?: boolean | Uint8Array
  readonly payload?: Uint8Array | string
  /** The length in the header, whatever the payload's; always in the 8-byte form. */
  readonly declaredLength?: bigint
}

/** A received frame. */
export interface Frame {
  readonly opcode: number
  readonly fin: boolean
  readonly rsv1: boolean
  readonly rsv2: boolean
  readonly rsv3: boolean
  readonly isMasked: boolean
  /** Unmasked. */
  readonly payload: Uint8Array
}

/** Fixed, so that tests can compare bytes. */
const DEFAULT_MASK = new Uint8Array([0x37, 0xfa, 0x21, 0x3d])

function applyMask(payload: Uint8Array, key: Uint8Array): Uint8Array {
  return payload.map((byte, index) => byte ^ (key[index % 4] ?? 0))
}

function encodeLength(length: number, declared: bigint | undefined): Uint8Array {
  if (declared === undefined && length < 126) return new Uint8Array([length])
  if (declared === undefined && length < 0x1_0000) return new Uint8Array([126, length >> 8, length & 0xff])
  const bytes = new Uint8Array(9).fill(127, 0, 1)
  new DataView(bytes.buffer).setBigUint64(1, declared ?? BigInt(length))
  return bytes
}

/** The exact bytes of one frame; concatenate several to send them in one segment. */
export function encodeFrame(spec: FrameSpec): Uint8Array {
  const { opcode = OPCODE.binary, fin = true, rsv1 = false, rsv2 = false, rsv3 = false, mask = true } = spec
  const payload = Buffer.from(spec.payload ?? '')
  const flags = (fin ? 0x80 : 0) | (rsv1 ? 0x40 : 0) | (rsv2 ? 0x20 : 0) | (rsv3 ? 0x10 : 0)
  const length = encodeLength(payload.length, spec.declaredLength)
  if (mask === false) return Buffer.concat([new Uint8Array([flags | opcode]), length, payload])
  const key = mask === true ? DEFAULT_MASK : mask
  length[0] = (length[0] ?? 0) | 0x80
  return Buffer.concat([new Uint8Array([flags | opcode]), length, key, applyMask(payload, key)])
}

/** The payload of a close frame; without a code it is empty. */
export function encodeClosePayload(code?: number, reason = ''): Uint8Array {
  if (code === undefined) return new Uint8Array(0)
  return Buffer.concat([new Uint8Array([code >> 8, code & 0xff]), Buffer.from(reason)])
}

/** Code and reason of a close frame's payload; `code` is absent when the payload is empty. */
export function decodeClosePayload(payload: Uint8Array): { readonly code?: number; readonly reason: string } {
  if (payload.length < 2) return { reason: '' }
  const code = new DataView(payload.buffer, payload.byteOffset).getUint16(0)
  return { code, reason: new TextDecoder().decode(payload.subarray(2)) }
}

interface Header {
  readonly headerBytes: number
  readonly payloadBytes: number
  readonly isMasked: boolean
}

/** `undefined` while the header is incomplete. */
function decodeHeader(bytes: Buffer): Header | undefined {
  const second = bytes[1]
  if (second === undefined) return undefined
  const isMasked = (second & 0x80) !== 0
  const short = second & 0x7f
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
  const headerBytes = 2 + lengthBytes + (isMasked ? 4 : 0)
  if (bytes.length < headerBytes) return undefined
  const long =
    lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(lengthBytes === 8 ? bytes.readBigUInt64BE(2) : 0)
  return { headerBytes, isMasked, payloadBytes: lengthBytes === 0 ? short : long }
}

/** Parses frames from a byte stream that may be split at any position. */
export class FrameParser {
  #chunks: Uint8Array[] = []
  #bufferedBytes = 0
  /** Bytes needed before parsing is tried again; keeps the cost of long frames linear. */
  #neededBytes = 2

  /** Adds bytes and returns the frames that they complete. */
  push(bytes: Uint8Array): Frame[] {
    this.#chunks.push(bytes)
    this.#bufferedBytes += bytes.length
    if (this.#bufferedBytes < this.#neededBytes) return []
    const frames: Frame[] = []
    let rest = Buffer.concat(this.#chunks)
    for (;;) {
      const header = decodeHeader(rest)
      const frameBytes = header === undefined ? rest.length + 1 : header.headerBytes + header.payloadBytes
      if (header === undefined || rest.length < frameBytes) {
        this.#keep(rest, frameBytes)
        return frames
      }
      frames.push(this.#decode(rest, header))
      rest = rest.subarray(frameBytes)
    }
  }

  #keep(rest: Buffer, neededBytes: number): void {
    this.#chunks = [rest]
    this.#bufferedBytes = rest.length
    this.#neededBytes = neededBytes
  }

  #decode(bytes: Buffer, { headerBytes, payloadBytes, isMasked }: Header): Frame {
    const first = bytes[0] ?? 0
    const body = new Uint8Array(bytes.subarray(headerBytes, headerBytes + payloadBytes))
    return {
      opcode: first & 0x0f,
      fin: (first & 0x80) !== 0,
      rsv1: (first & 0x40) !== 0,
      rsv2: (first & 0x20) !== 0,
      rsv3: (first & 0x10) !== 0,
      isMasked,
      payload: isMasked ? applyMask(body, bytes.subarray(headerBytes - 4, headerBytes)) : body,
    }
  }
}
