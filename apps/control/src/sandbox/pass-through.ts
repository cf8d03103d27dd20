import { ROLES, SUBPROTOCOL } from '@sandwire/protocol'
import { z } from 'zod'
import { ACTIONS } from '../audit/actions.ts'
import { withPing } from '../session-settings.ts'
import { compatCallSchema } from '../compat/compat-call.ts'
import { SCOPES } from '../auth/identity.ts'
import { withDeadline } from '../http/deadline.ts'
import { grantedRole } from './access.ts'
import { CALL_HEADER, type AttachCall } from './call.ts'
import {
  type Caller,
  errorOfCode,
  invalidResponse,
  readSandboxdError,
  REFUSAL_HEADER,
  type SandboxdClient,
  startingTemplate,
} from './sandboxd-client.ts'
import { MODE_HEADER, SESSION_HEADER } from './session-names.ts'

/** Until an error response must end. */
const REFUSAL_MS = 10_000

/** Fields of every call. */
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
  compat: compatCallSchema.exactOptional(),
  sessionName: z.string().exactOptional(),
  agentTui: z.string().exactOptional(),
  isIdempotent: z.boolean(),
  dialect: z.enum(['plain', 'v1']),
})

/** Parses the attach call that the Worker sent. */
export function callOfHeader(headers: Headers): AttachCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}

/**
 * Opens a WebSocket to sandboxd and passes it through. workerd connects the two sockets itself: no frame passes through
 * JavaScript, nothing is buffered, and the object may even be evicted. Only a 101 response is passed on, with no header but the
 * subprotocol: sandboxes run untrusted code, which must not set cookies. A refusal that sandboxd sends in a frame is turned into
 * an error response, so that it is counted as one.
 */
export async function passThrough(
  address: string,
  sandboxd: SandboxdClient,
  caller: Caller,
  call: AttachCall,
): Promise<Response> {
  const { session, query, dialect, compat, sessionName } = call
  const isV1 = dialect === 'v1' && compat === undefined
  const response = await sandboxd.fetch(
    address,
    {
      ...startingTemplate(caller, call),
      ...grantedRole(caller, call),
      ...(sessionName === undefined ? {} : { sessionName }),
    },
    {
      method: 'GET',
      path:
        compat === undefined
          ? pathOf('/attach', query)
          : pathOf(`/envelopes/${compat.kind}`, withPing(query, compat.heartbeatSeconds)),
      headers: {
        upgrade: 'websocket',
        ...(isV1 ? { 'sec-websocket-protocol': SUBPROTOCOL } : {}),
      },
      ...(session === undefined ? {} : { session }),
    },
  )
  const { webSocket } = response
  if (response.status !== 101 || webSocket === null) {
    const deadline = { ms: REFUSAL_MS, late: invalidResponse }
    throw await withDeadline(deadline, (signal) => readSandboxdError(response, signal))
  }
  const refusal = response.headers.get(REFUSAL_HEADER)
  if (refusal !== null) {
    closeSocket(response)
    throw errorOfCode(refusal)
  }
  const headers = new Headers()
  if (response.headers.get('sec-websocket-protocol') === SUBPROTOCOL && isV1)
    headers.set('sec-websocket-protocol', SUBPROTOCOL)
  // For the Worker, which replaces them by a session token.
  for (const name of [SESSION_HEADER, MODE_HEADER]) {
    const value = response.headers.get(name)
    if (value !== null) headers.set(name, value)
  }
  return new Response(null, { status: 101, webSocket, headers })
}

function pathOf(path: string, query: string): string {
  return query === '' ? path : `${path}?${query}`
}

/** Closes a socket that is not passed on. */
export function closeSocket({ webSocket }: Response): void {
  webSocket?.accept()
  webSocket?.close()
}
