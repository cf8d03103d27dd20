import { ROLES, SUBPROTOCOL } from '@sandwire/protocol'
import { z } from 'zod'
import { CALL_HEADER, type AttachCall } from './call.ts'
import type { SandboxdClient } from './sandboxd-client.ts'
import { errorOfUpstream } from './upstream-errors.ts'

const callSchema = z.object({
  identity: z.string(),
  requestId: z.string(),
  query: z.string(),
  authority: z.enum(ROLES),
  session: z.string().optional(),
  isIdempotent: z.boolean(),
  dialect: z.enum(['plain', 'v1']),
})

/** Reads the attach call that the worker sent along. */
export function callOfHeader(headers: Headers): AttachCall {
  const { session, ...call } = callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
  return session === undefined ? call : { ...call, session }
}

/**
 * Opens a WebSocket to sandboxd and hands it on. workerd joins the two sockets itself: no frame passes through
 * JavaScript, nothing is buffered here, and the object may even be evicted. Only a real 101 is passed on, and of its
 * headers only the subprotocol: the sandbox runs foreign code, and its cookies are not ours.
 */
export async function passThrough(
  address: string,
  sandboxd: SandboxdClient,
  call: AttachCall,
): Promise<Response> {
  const { identity, authority, requestId, session, query, dialect } = call
  const response = await sandboxd.fetch(
    address,
    { identity, authority, exec: true, requestId },
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
