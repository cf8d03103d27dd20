/**
 * Helpers for the plain dialect, for programs that speak it without a client library. Input is sent as raw bytes; output is
 * received as a stream id and a payload; everything else is JSON text.
 */
import { plainClientMessage, type PlainClientMessage } from './client-frames.ts'
import { STREAM } from './data-frame.ts'
import { plainServerMessage, type PlainServerMessage } from './server-frames.ts'

export const STREAM_STDOUT = STREAM.stdout
export const STREAM_STDERR = STREAM.stderr

/** Client to server: the terminal has a new size. */
export type ResizeMessage = Extract<PlainClientMessage, { type: 'resize' }>
/** Client to server: send a signal such as `SIGINT` to the process. */
export type SignalMessage = Extract<PlainClientMessage, { type: 'signal' }>
/** Client to server: end of input. */
export type EofMessage = Extract<PlainClientMessage, { type: 'eof' }>
/** Client to server: type into another pane of tmux. */
export type StdinMessage = Extract<PlainClientMessage, { type: 'stdin' }>
/** Server to client: the process has exited. The last message. */
export type ExitMessage = Extract<PlainServerMessage, { type: 'exit' }>
/** Server to client: an error. */
export type ErrorMessage = Extract<PlainServerMessage, { type: 'error' }>

export type ControlMessage =
  | ResizeMessage
  | SignalMessage
  | EofMessage
  | StdinMessage
  | ExitMessage
  | ErrorMessage

export type ParsedMessage =
  | { kind: 'binary'; streamId: number; payload: Uint8Array }
  | { kind: 'control'; message: ControlMessage }

/** A binary output frame: the stream id, then the bytes. */
export function pack(streamId: number, chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(1 + chunk.byteLength)
  frame[0] = streamId
  frame.set(chunk, 1)
  return frame
}

/** The stream id and payload of a binary output frame; throws on an empty one. */
export function unpack(data: Uint8Array): { streamId: number; payload: Uint8Array } {
  const [streamId] = data
  if (streamId === undefined) throw new Error('Cannot unpack an empty frame')
  return { streamId, payload: data.subarray(1) }
}

/** True for a control message of either direction with valid fields. */
export function isControlMessage(data: unknown): data is ControlMessage {
  return plainClientMessage.decode(data) !== undefined || plainServerMessage.decode(data) !== undefined
}

/** Parses a message from the server: text is a control message, bytes are output. Throws on anything else. */
export function parseMessage(data: string | ArrayBuffer): ParsedMessage {
  if (typeof data !== 'string') return { kind: 'binary', ...unpack(new Uint8Array(data)) }
  const message: unknown = JSON.parse(data)
  if (!isControlMessage(message)) throw new Error('Unknown control message')
  return { kind: 'control', message }
}
