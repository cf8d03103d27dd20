import { ROLES, SUBPROTOCOL } from '@sandwire/protocol'
import { z } from 'zod'
import { ACTIONS } from '../audit/actions.ts'
import { ptySelectionSchema } from '../compat/pty-sessions.ts'
import { SCOPES } from '../auth/identity.ts'
import { withDeadline } from '../http/deadline.ts'
import { roleAtTheDoor } from './attach-authority.ts'
import { CALL_HEADER, type AttachCall } from './call.ts'
import { type Caller, notUnderstood, type SandboxdClient, startingTemplate } from './sandboxd-client.ts'
import { MODE_HEADER, SESSION_HEADER } from './session-names.ts'
import { errorOfCode, errorOfUpstream, REFUSAL_HEADER } from './upstream-errors.ts'

/** Until sandboxd has to have said why there is no socket. */
const REFUSAL_MS = 10_000

/** What every call says of who asks. */
export const callFields = {
  identity: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  login: z.string().exactOptional(),
  token: z.string().exactOptional(),
  issuedMs: z.number().exactOptional(),
  expiresMs: z.number().exactOptional(),
  address: z.string(),
  requestId: z.string(),
  action: z.enum(ACTIONS).exactOptional(),
  template: z.string().exactOptional(),
}

const callSchema = z.object({
  ...callFields,
  query: z.string(),
  joins: z.string().exactOptional(),
  session: z.string().exactOptional(),
  maxRole: z.enum(ROLES).exactOptional(),
  env: z.record(z.string(), z.string()).exactOptional(),
  compat: ptySelectionSchema.exactOptional(),
  sessionName: z.string().exactOptional(),
  isIdempotent: z.boolean(),
  dialect: z.enum(['plain', 'v1']),
})

/** Reads the attach call that the worker sent along. */
export function callOfHeader(headers: Headers): AttachCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}

/**
 * Opens a WebSocket to sandboxd and hands it on. workerd joins the two sockets itself: no frame passes through
 * JavaScript, nothing is buffered here, and the object may even be evicted. Only a real 101 is passed on, and of its
 * headers only the subprotocol: the sandbox runs foreign code, and its cookies are not ours. One that refuses in a frame is
 * taken for that refusal, which is told in our own words and counted as one.
 */
export async function passThrough(
  address: string,
  sandboxd: SandboxdClient,
  caller: Caller,
  call: AttachCall,
): Promise<Response> {
  const { session, query, dialect, compat, sessionName } = call
  const isOurs = dialect === 'v1' && compat === undefined
  const response = await sandboxd.fetch(
    address,
    {
      ...startingTemplate(caller, call),
      ...roleAtTheDoor(caller, call),
      ...(sessionName === undefined ? {} : { sessionName }),
    },
    {
      method: 'GET',
      path: `${compat === undefined ? '/attach' : '/envelopes/pty'}${query === '' ? '' : `?${query}`}`,
      headers: {
        upgrade: 'websocket',
        ...(isOurs ? { 'sec-websocket-protocol': SUBPROTOCOL } : {}),
      },
      ...(session === undefined ? {} : { session }),
    },
  )
  const { webSocket } = response
  if (response.status !== 101 || webSocket === null) {
    const deadline = { ms: REFUSAL_MS, late: notUnderstood }
    throw await withDeadline(deadline, (signal) => errorOfUpstream(response, signal))
  }
  const refusal = response.headers.get(REFUSAL_HEADER)
  if (refusal !== null) {
    hangUp(response)
    throw errorOfCode(refusal)
  }
  const headers = new Headers()
  if (response.headers.get('sec-websocket-protocol') === SUBPROTOCOL && isOurs)
    headers.set('sec-websocket-protocol', SUBPROTOCOL)
  // For the worker, which makes names of its own of them.
  for (const name of [SESSION_HEADER, MODE_HEADER]) {
    const value = response.headers.get(name)
    if (value !== null) headers.set(name, value)
  }
  return new Response(null, { status: 101, webSocket, headers })
}

/** Closes what was opened and is handed to nobody. */
export function hangUp({ webSocket }: Response): void {
  webSocket?.accept()
  webSocket?.close()
}
