import { type ErrorCode, isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedJson } from '../http/read-bounded.ts'

const MAX_ERROR_BYTES = 16 * 1024
const told = z.object({ error: z.object({ code: z.string() }) })

/** Codes of sandboxd that are about the caller's request, in our words. All others mean that the sandbox is broken. */
const PASSED_ON: Partial<Record<ErrorCode, string>> = {
  bad_request: 'Cannot do this: the sandbox does not accept a parameter',
  path_refused: 'Cannot start the process there: no such directory in the workspace',
  needs_v1: 'Cannot use a parameter without the sandwire.v1 subprotocol',
  forbidden: 'Cannot do this: not allowed in this sandbox',
  session_not_found: 'No session has this id',
  session_gone: 'The session has ended',
  conflict: 'The create id was used with other parameters',
  too_many_sessions: 'Cannot start more sessions in this sandbox',
  too_many_attachments: 'Cannot attach more clients to this session',
  rate_limited: 'Cannot take more requests now',
  frame_too_large: 'Cannot take so much at once',
  command_not_found: 'Cannot start the process: no such command',
  command_not_executable: 'Cannot start the process: the command cannot be executed',
  spawn_failed: 'Cannot start the process',
  shutting_down: 'The sandbox is stopping',
}

/** How sandboxd tells with a 101 that it refuses, and in a frame why: control passes frames on and reads none. */
export const REFUSAL_HEADER = 'sandwire-refusal'

function broken(): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox does not answer as it should')
}

/** An error of ours for a code of sandboxd. */
export function errorOfCode(code: string): SandwireError {
  const message = isErrorCode(code) ? PASSED_ON[code] : undefined
  return !isErrorCode(code) || message === undefined ? broken() : new SandwireError(code, message)
}

/** Turns an answer that is not the expected one into an error of ours. Nothing of its text is kept. The signal ends it, and throws why. */
export async function errorOfUpstream(response: Response, signal: AbortSignal): Promise<SandwireError> {
  if (response.status < 400 || response.status > 599) {
    await response.body?.cancel()
    return broken()
  }
  const body = told.safeParse(await readBoundedJson(response, MAX_ERROR_BYTES, signal))
  return body.success ? errorOfCode(body.data.error.code) : broken()
}
