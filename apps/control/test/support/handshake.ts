import { openRawWebSocket, type RawHandshake, type RawWebSocketOptions } from '@sandwire/testing'
import { type RunningControl, TOKEN } from './control.ts'
import { fieldOf } from './json.ts'

/** An upgrade with the local token, unless the headers override it. */
export function upgrade(
  control: RunningControl,
  path: string,
  {
    headers,
    ...options
  }: Omit<RawWebSocketOptions, 'port' | 'path' | 'headers'> & {
    readonly headers?: readonly (readonly [string, string])[]
  } = {},
): Promise<RawHandshake> {
  return openRawWebSocket({
    port: control.port,
    path,
    headers: headers ?? [['Authorization', `Bearer ${TOKEN}`]],
    ...options,
  })
}

/** The code of a refusal over HTTP, with its status. */
export function refusalOf(handshake: RawHandshake): string {
  if (handshake.kind !== 'refused') return handshake.kind
  const body: unknown = JSON.parse(handshake.body)
  const error: unknown = fieldOf(body, 'error')
  return `${handshake.status} ${String(fieldOf(error, 'code'))}`
}
