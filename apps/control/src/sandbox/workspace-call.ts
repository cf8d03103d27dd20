import { z } from 'zod'
import { CALL_HEADER, type SandboxCall } from './call.ts'
import { callFields } from './pass-through.ts'

/** A request about files on its way to the sandbox. Its body is that of the request that carries it. */
export interface WorkspaceCall extends SandboxCall {
  /** By its name in the gateway's table. */
  readonly route: string
  readonly isHead: boolean
  /** Whether a sandbox that does not run is started for it. */
  readonly mayStart: boolean
  /** What stands for `:id`. */
  readonly id?: string
  /** Query for sandboxd, as it was sent. */
  readonly query: string
  /** Headers for sandboxd. */
  readonly headers: Readonly<Record<string, string>>
  /** Length of the body; absent when it was not said. */
  readonly length?: number
}

/** Where a sandbox's object takes such a call. */
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

/** Reads the call that the worker sent along. */
export function workspaceCallOf(headers: Headers): WorkspaceCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}
