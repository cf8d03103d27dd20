import { z } from 'zod'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import { callFields } from '../sandbox/pass-through.ts'

/** A proxied request on its way from the Worker to the sandbox's object. Its body is the body of the carrying request. */
export interface WorkspaceCall extends SandboxCall {
  /** Key in `PROXY_ROUTES`. */
  readonly route: string
  readonly isHead: boolean
  /** A stopped sandbox is started for this request. */
  readonly mayStart: boolean
  /** Value of `:id`. */
  readonly id?: string
  /** Query for sandboxd, byte for byte as it was sent. */
  readonly query: string
  /** Headers for sandboxd. */
  readonly headers: Readonly<Record<string, string>>
  /** Length of the body; absent when it is not known. */
  readonly length?: number
}

/** URL at which a sandbox's object accepts such a call. */
export const WORKSPACE_URL = 'http://sandbox/workspace'

const callSchema = z.object({
  ...callFields,
  route: z.string(),
  isHead: z.boolean(),
  mayStart: z.boolean(),
  id: z.string().exactOptional(),
  query: z.string(),
  headers: z.record(z.string(), z.string()),
  length: z.number().exactOptional(),
})

export function parseWorkspaceCall(headers: Headers): WorkspaceCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}
