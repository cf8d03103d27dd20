import { expect } from 'bun:test'
import type { RawHandshake, RawWebSocket } from '@sandwire/testing'
import { type ApiClient, JWT_SECRET, linkIn, textIn, UNLIMITED } from './api-client.ts'
import { type ControlOptions, type RunningControl, startControl } from './control.ts'
import type { FakeSandboxes, Seen } from './fake-sandboxes.ts'
import { refusalOf, upgrade } from './handshake.ts'
import { fieldOf } from './json.ts'

/** Close frame of a connection whose authorization was revoked. */
export const REVOKED = { code: 4435, reason: 'revoked' }

/** Control without rate limits, for users with service tokens. */
export function startControlForUsers(
  runner: ControlOptions['runner'],
  options: Pick<ControlOptions, 'alter'> = {},
): Promise<RunningControl> {
  return startControl({ runner, config: { limits: UNLIMITED }, bindings: { JWT_SECRET }, ...options })
}

export async function makeSandbox(owner: ApiClient, name: string): Promise<string> {
  return textIn(await owner.post('/api/sandboxes', { name }), 'id')
}

/** Starts a session of a real sandboxd. */
export async function startSession(owner: ApiClient, sandbox: string): Promise<string> {
  const started = await owner.post(`/api/sandboxes/${sandbox}/sessions`, { cmd: 'cat', keep: 600 })
  return textIn(started, 'id')
}

/** Starts a session of a fake sandboxd as the local user, and returns its id and its sandbox's. */
export async function startFakeSession(
  control: RunningControl,
  name: string,
): Promise<{ readonly session: string; readonly sandbox: string }> {
  const path = `/attach?sandbox=${name}&cmd=cat`
  const text = await firstText(await upgrade(control, path, { subprotocols: ['sandwire.v1'] }))
  const session = text.replace('session ', '')
  return { session, sandbox: session.split('.')[0] ?? '' }
}

/** Creates a grant, which an account redeems by its share link; returns the grant. */
export async function shareWith(owner: ApiClient, caller: ApiClient, request: object): Promise<string> {
  const made = await owner.post('/api/grants', request)
  expect(made.status).toBe(201)
  expect((await caller.post('/api/grants/redeem', { link: linkIn(made) })).status).toBe(200)
  return textIn(made, 'grant')
}

export function socketOf(handshake: RawHandshake): RawWebSocket {
  if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${refusalOf(handshake)}`)
  return handshake.socket
}

/** The first message of a socket, which is then closed. */
export async function firstText(handshake: RawHandshake): Promise<string> {
  const socket = socketOf(handshake)
  const frame = new TextDecoder().decode((await socket.nextFrame()).payload)
  socket.reset()
  return frame
}

/** A socket to a session that sends nothing and records its close. */
export async function watch(
  control: RunningControl,
  caller: ApiClient,
  session: string,
): Promise<RawWebSocket> {
  const path = `/attach?session=${session}`
  return socketOf(await upgrade(control, path, { subprotocols: ['sandwire.v1'], headers: caller.headers }))
}

/** The outcome of an upgrade to a fake sandboxd: `open`, the error code of a frame, or status and code of a response. */
export async function outcomeOf(handshake: RawHandshake): Promise<string> {
  if (handshake.kind !== 'open') return refusalOf(handshake)
  const frame = await firstText(handshake)
  return frame.startsWith('session ') ? 'open' : String(fieldOf(JSON.parse(frame), 'code'))
}

/** The outcome of an attach. */
export async function attachAs(control: RunningControl, caller: ApiClient, path: string): Promise<string> {
  return outcomeOf(await upgrade(control, path, { subprotocols: ['sandwire.v1'], headers: caller.headers }))
}

/** True if the server answers a ping. */
export async function isOpen(socket: RawWebSocket): Promise<boolean> {
  await socket.sendFrame({ opcode: 9, payload: new Uint8Array() })
  return (await socket.nextFrame()).opcode === 10
}

/** Attaches that reached a fake sandboxd; other requests may arrive at any time. */
export function attachesTo(sandboxes: FakeSandboxes): readonly Seen[] {
  return sandboxes.seen.filter(({ claims }) => /^\/attach(\?|$)/.test(claims.path))
}
