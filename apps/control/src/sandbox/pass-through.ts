import { type Role, ROLES, SUBPROTOCOL } from '@sandwire/protocol'
import { z } from 'zod'
import { ACTIONS } from '../audit/actions.ts'
import { SCOPES } from '../auth/authenticator.ts'
import { CALL_HEADER, type AttachCall } from './call.ts'
import type { Caller, SandboxdClient } from './sandboxd-client.ts'
import { errorOfUpstream } from './upstream-errors.ts'

const callSchema = z.object({
  identity: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  login: z.string().exactOptional(),
  expiresMs: z.number().exactOptional(),
  address: z.string(),
  requestId: z.string(),
  action: z.enum(ACTIONS).exactOptional(),
  template: z.string().exactOptional(),
  query: z.string(),
  joins: z.string().exactOptional(),
  session: z.string().exactOptional(),
  maxRole: z.enum(ROLES).exactOptional(),
  isIdempotent: z.boolean(),
  dialect: z.enum(['plain', 'v1']),
})

/** Reads the attach call that the worker sent along. */
export function callOfHeader(headers: Headers): AttachCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}

/** The lesser of what the access and what the credential allow. */
function lesserOf(authority: Caller['authority'], maxRole: Role | undefined): Caller['authority'] {
  if (authority === 'control' || maxRole === undefined) return authority
  // From least to most.
  return ROLES[Math.min(ROLES.indexOf(authority), ROLES.indexOf(maxRole))] ?? 'viewer'
}

/**
 * Opens a WebSocket to sandboxd and hands it on. workerd joins the two sockets itself: no frame passes through
 * JavaScript, nothing is buffered here, and the object may even be evicted. Only a real 101 is passed on, and of its
 * headers only the subprotocol: the sandbox runs foreign code, and its cookies are not ours.
 */
export async function passThrough(
  address: string,
  sandboxd: SandboxdClient,
  caller: Caller,
  call: AttachCall,
): Promise<Response> {
  const { session, query, dialect } = call
  const response = await sandboxd.fetch(
    address,
    { ...caller, authority: lesserOf(caller.authority, call.maxRole) },
    {
      method: 'GET',
      path: `/attach${query === '' ? '' : `?${query}`}`,
      headers: {
        upgrade: 'websocket',
        ...(dialect === 'v1' ? { 'sec-websocket-protocol': SUBPROTOCOL } : {}),
      },
      ...(session === undefined ? {} : { session }),
    },
  )
  const { webSocket } = response
  if (response.status !== 101 || webSocket === null) throw await errorOfUpstream(response)
  const headers = new Headers()
  if (response.headers.get('sec-websocket-protocol') === SUBPROTOCOL && dialect === 'v1')
    headers.set('sec-websocket-protocol', SUBPROTOCOL)
  return new Response(null, { status: 101, webSocket, headers })
}
