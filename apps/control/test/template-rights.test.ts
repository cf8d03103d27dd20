import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  DEFAULT_SANDBOX_LIMITS,
  type InternalClaims,
  exportPublicKey,
  signInternalToken,
} from '@sandwire/internal-api'
import { RealSandboxes } from './support/real-sandboxes.ts'

const SANDBOX = '0'.repeat(32)

let sandboxes: RealSandboxes
let socket: string
let key: CryptoKey
beforeAll(async () => {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  key = pair.privateKey
  sandboxes = new RealSandboxes()
  socket = await sandboxes.start({
    id: SANDBOX,
    name: 'dev',
    publicKey: await exportPublicKey(pair.publicKey),
    env: {},
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
  })
})
afterAll(() => sandboxes[Symbol.asyncDispose]())

let requests = 0
const mintRequestId = (): string => {
  requests += 1
  return `request-${requests}`
}

/** Starts a process as control does and returns the status. */
async function start(
  rights: Partial<InternalClaims>,
  body: Readonly<Record<string, unknown>>,
): Promise<number> {
  const nowMs = Date.now()
  const token = await signInternalToken(key, {
    method: 'POST',
    path: '/sessions',
    sandbox: SANDBOX,
    identity: 'ada',
    authority: 'driver',
    exec: false,
    requestId: mintRequestId(),
    issuedMs: nowMs,
    expiresMs: nowMs + 1e4,
    ...rights,
  })
  const response = await fetch('http://localhost/sessions', {
    unix: socket,
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ createId: crypto.randomUUID().replaceAll('-', ''), cmd: 'true', ...body }),
  })
  return response.status
}

test('(threat T9) sandboxd starts a template of control with the environment of the template only', async () => {
  expect(await start({}, {})).toBe(403)
  expect(await start({ starts: false }, {})).toBe(403)
  expect(await start({ starts: true }, {})).toBe(201)
  expect(await start({ starts: true, env: { A: '1' } }, {})).toBe(201)
  expect(await start({ starts: true }, { env: { LD_PRELOAD: 'x' } })).toBe(403)
  expect(await start({ starts: true }, { env: { LANG: 'C' } })).toBe(403)
  for (const authority of ['viewer', 'collaborator', 'control'] as const)
    expect(await start({ starts: true, authority }, {})).toBe(403)
  expect(await start({ exec: true }, { env: { A: '1' } })).toBe(201)
})
