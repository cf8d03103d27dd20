import { type ErrorCode, ERRORS, isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedJson } from '../http/read-bounded.ts'
import { CODE_HEADER } from '../http/respond.ts'
import { errorOfCode } from './upstream-errors.ts'

const MAX_ERROR_BYTES = 64 * 1024
/** Longest message that is passed on: two paths and a few words. */
const MAX_MESSAGE_CHARS = 1_000

/** Codes of sandboxd that are about the caller's files, and our words where its own are not fit to be told. */
const FILE_WORDS: Partial<Record<ErrorCode, string>> = {
  bad_request: 'Cannot do this: the sandbox does not accept a parameter',
  path_refused: 'Cannot use the path: it leads out of the workspace',
  file_not_found: 'Cannot find the file',
  file_exists: 'Cannot write there: something is there already',
  not_a_folder: 'Cannot do this: not a folder',
  is_a_folder: 'Cannot do this: it is a folder',
  folder_not_empty: 'Cannot remove the folder: it is not empty',
  special_file: 'Cannot use the file: neither a file nor a folder',
  file_refused: 'Cannot use the file: not permitted',
  file_changed: 'Cannot write the file: it has changed',
  file_too_large: 'Cannot use the file: too large',
  range_refused: 'Cannot read there: the file has no such bytes',
  disk_full: 'Cannot write: no space is left',
  not_a_repository: 'Cannot ask git: not a repository',
  git_failed: 'Cannot do this: git refuses',
  timed_out: 'It took longer than it may',
  conflict: 'Cannot do this: something else is under way',
  command_not_found: 'Cannot do this: a program is missing in the sandbox',
}

/** What an error of the contract says without a code. */
const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'bad_request',
  403: 'file_refused',
  404: 'file_not_found',
  409: 'file_exists',
  413: 'file_too_large',
  504: 'timed_out',
  507: 'disk_full',
}

/** Statuses that the contract has where our table has others: a file that is no text, and anything that fails in writing. */
const CONTRACT_STATUS: ReadonlySet<number> = new Set([415, 500])

/** Whether a text can be shown anywhere: nothing in it moves a cursor, turns the writing around or ends a line. */
function isPrintable(text: string): boolean {
  return text !== '' && text.length <= MAX_MESSAGE_CHARS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text)
}

/** What is at a path instead of what a request was made for. */
const current = z.object({
  kind: z.enum(['file', 'folder', 'link', 'special']).exactOptional(),
  size: z.int().min(0).exactOptional(),
  mode: z.int().min(0).exactOptional(),
  mtimeMs: z.number().exactOptional(),
  etag: z.string().max(200).refine(isPrintable).exactOptional(),
})
const newerError = z.object({
  /** Where an upload goes on, when it was continued elsewhere. */
  received: z.int().min(0).exactOptional(),
  error: z.object({ code: z.string(), message: z.string(), current: current.nullable().exactOptional() }),
})
const contractError = z.object({ detail: z.string() })
const fault = z.object({
  type: z.string().max(64),
  loc: z.array(z.union([z.string().max(64), z.int()])).max(8),
  msg: z.string().refine(isPrintable),
  input: z.unknown(),
  ctx: z.record(z.string().max(64), z.union([z.string().max(MAX_MESSAGE_CHARS), z.number()])).exactOptional(),
})
/** What the contract says of parameters that do not fit. */
const contractFaults = z.object({ detail: z.array(fault).min(1).max(8) })

/** What an answer that is no success says. */
export type Told =
  | { readonly kind: 'error'; readonly error: SandwireError }
  /** More than an error holds, to be passed on as it is: each part of it was understood. */
  | { readonly kind: 'body'; readonly code: ErrorCode; readonly body: (requestId: string) => unknown }

export function broken(): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox does not answer as it should')
}

export function unavailable(retryAfterMs?: number): SandwireError {
  return new SandwireError('workspace_unavailable', 'The sandbox takes no requests about its files now', {
    retryAfterMs,
  })
}

/** The error for a code that sandboxd said, with its message where that is one. */
function errorOf(code: string, message: string, status: number): SandwireError {
  if (!isErrorCode(code) || ERRORS[code].status !== status) return statusError(status)
  const words = FILE_WORDS[code]
  if (words !== undefined) return new SandwireError(code, isPrintable(message) ? message : words)
  if (code === 'not_found')
    return new SandwireError(
      'version_unsupported',
      'Cannot use the workspace: its sandboxd is old; stop and start the sandbox',
    )
  return errorOfCode(code)
}

function statusError(status: number): SandwireError {
  return status === 503 ? unavailable() : broken()
}

function readNewer(value: unknown, status: number): Told {
  const told = newerError.safeParse(value)
  if (!told.success) return { kind: 'error', error: statusError(status) }
  const { error: said, received } = told.data
  const error = errorOf(said.code, said.message, status)
  const { code, message } = error
  const now = code === 'file_changed' ? said.current : undefined
  const more = code === 'conflict' ? received : undefined
  if (now === undefined && more === undefined) return { kind: 'error', error }
  return {
    kind: 'body',
    code,
    body: (request_id) => ({
      error: { code, message, request_id, ...(now === undefined ? {} : { current: now }) },
      ...(more === undefined ? {} : { received: more }),
    }),
  }
}

function readContract(value: unknown, status: number, code: string | null): Told {
  const faults = contractFaults.safeParse(value)
  if (faults.success && status === 422) return { kind: 'body', code: 'bad_request', body: () => faults.data }
  const told = contractError.safeParse(value)
  if (told.success && code !== null && CONTRACT_STATUS.has(status))
    return ofContract(told.data.detail, code, status)
  const known = code ?? CODE_OF_STATUS[status]
  if (!told.success || known === undefined) return { kind: 'error', error: statusError(status) }
  return { kind: 'error', error: errorOf(known, told.data.detail, status) }
}

/** An error with a status of the contract's own, when it is about files. */
function ofContract(detail: string, code: string, status: number): Told {
  const isOurs = isErrorCode(code) && FILE_WORDS[code] !== undefined && isPrintable(detail)
  return isOurs
    ? { kind: 'body', code, body: () => ({ detail }) }
    : { kind: 'error', error: statusError(status) }
}

export interface ToldOptions {
  readonly api: 'native' | 'compat'
  readonly isHead: boolean
  /** Ends it, and throws why. */
  readonly signal: AbortSignal
}

/** What sandboxd says went wrong. Codes are a closed list, texts are passed on when they are harmless, nothing else is. */
export async function readTold(response: Response, { api, isHead, signal }: ToldOptions): Promise<Told> {
  const { status, headers } = response
  if (status < 400 || status > 599) {
    await response.body?.cancel()
    return { kind: 'error', error: broken() }
  }
  // An answer to HEAD has nothing but its status.
  if (isHead) return { kind: 'error', error: errorOf(CODE_OF_STATUS[status] ?? '', '', status) }
  const value = await readBoundedJson(response, MAX_ERROR_BYTES, signal)
  const told =
    api === 'native' ? readNewer(value, status) : readContract(value, status, headers.get(CODE_HEADER))
  return told.kind === 'error' ? { kind: 'error', error: withWait(told.error, headers) } : told
}

/** The error with how long sandboxd says to wait. */
function withWait({ code, message, retryAfterMs }: SandwireError, headers: Headers): SandwireError {
  const seconds = /^[0-9]{1,4}$/.exec(headers.get('retry-after') ?? '')?.[0]
  const waitMs = seconds === undefined ? retryAfterMs : Number(seconds) * 1000
  return new SandwireError(code, message, { retryAfterMs: waitMs })
}
