import {
  clientMessage,
  type ClientMessage,
  plainClientMessage,
  type PlainClientMessage,
} from './client-frames.ts'
import { type StreamName, unpackData } from './data-frame.ts'
import { MAX_CONTROL_CHARS } from './limits.ts'
import {
  serverMessage,
  type ServerMessage,
  plainServerMessage,
  type PlainServerMessage,
} from './server-frames.ts'
import type { Schema } from './schema.ts'

/** A WebSocket message: text or bytes. */
export type WireMessage = string | Uint8Array

/** What a client sent, decoded. */
export type FromClient<M> =
  | { readonly kind: 'input'; readonly bytes: Uint8Array }
  | { readonly kind: 'control'; readonly message: M }

/** What a server sent, decoded. */
export type FromServer<M> =
  | { readonly kind: 'data'; readonly stream: StreamName; readonly payload: Uint8Array }
  | { readonly kind: 'control'; readonly message: M }

function decodeText<T>(schema: Schema<T>, message: string): T | undefined {
  if (message.length > MAX_CONTROL_CHARS) return undefined
  try {
    return schema.decode(JSON.parse(message))
  } catch {
    // Not JSON, or nested too deeply for the parser.
    return undefined
  }
}

function decodeFromClient<M>(schema: Schema<M>, wire: WireMessage): FromClient<M> | undefined {
  if (typeof wire !== 'string') return { kind: 'input', bytes: wire }
  const message = decodeText(schema, wire)
  return message === undefined ? undefined : { kind: 'control', message }
}

function decodeFromServer<M>(schema: Schema<M>, wire: WireMessage): FromServer<M> | undefined {
  if (typeof wire !== 'string') {
    const data = unpackData(wire)
    return data === undefined ? undefined : { kind: 'data', stream: data.stream, payload: data.payload }
  }
  const message = decodeText(schema, wire)
  return message === undefined ? undefined : { kind: 'control', message }
}

/** Decodes a frame of a `sandwire.v1` client; `undefined` means refuse it. */
export function decodeClient(wire: WireMessage): FromClient<ClientMessage> | undefined {
  return decodeFromClient(clientMessage, wire)
}

/** Decodes a frame of a plain client; `undefined` means refuse it. */
export function decodePlainClient(wire: WireMessage): FromClient<PlainClientMessage> | undefined {
  return decodeFromClient(plainClientMessage, wire)
}

/** Decodes a frame of a `sandwire.v1` server; `undefined` means the peer is broken. */
export function decodeServer(wire: WireMessage): FromServer<ServerMessage> | undefined {
  return decodeFromServer(serverMessage, wire)
}

/** Decodes a frame sent to a plain client; `undefined` means the peer is broken. */
export function decodePlainServer(wire: WireMessage): FromServer<PlainServerMessage> | undefined {
  return decodeFromServer(plainServerMessage, wire)
}

export function encode(
  message: ClientMessage | PlainClientMessage | ServerMessage | PlainServerMessage,
): string {
  return JSON.stringify(message)
}
