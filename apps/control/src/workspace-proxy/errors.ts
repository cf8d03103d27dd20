import { GIT_FAILURE_REASONS } from '@sandwire/internal-api'
import { type ErrorCode, ERRORS, isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedJson } from '../http/read-bounded.ts'
import { CODE_HEADER } from '../http/respond.ts'
import { errorOfCode, invalidResponse } from '../sandbox/sandboxd-client.ts'

const MAX_ERROR_BYTES = 64 * 1024
/** Longest message that is passed on: two paths and a sentence. */
const MAX_MESSAGE_CHARS = 1_000

/** Codes of sandboxd about the caller's files, with the message for when sandboxd's own cannot be shown. */
const FILE_MESSAGES: Partial<Record<ErrorCode, string>> = {
  bad_request: 'A parameter is not valid',
  path_refused: 'The path leads out of the workspace',
  file_not_found: 'The file does not exist',
  file_exists: 'A file or folder with this name exists already',
  not_a_folder: 'Not a folder',
  is_a_folder: 'It is a folder',
  folder_not_empty: 'The folder is not empty',
  special_file: 'Neither a file nor a folder',
  file_refused: 'Permission denied',
  file_changed: 'The file has changed',
  file_too_large: 'The file is too large',
  range_refused: 'The range is outside the file',
  disk_full: 'The disk of the sandbox is full',
  not_a_repository: 'Not a git repository',
  git_failed: 'git failed',
  timed_out: 'The request took too long',
  conflict: 'Another operation is in progress',
  command_not_found: 'A program is missing in the sandbox',
}

/** Codes for errors of the compat API that have none. */
const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'bad_request',
  403: 'file_refused',
  404: 'file_not_found',
  409: 'file_exists',
  413: 'file_too_large',
  504: 'timed_out',
  507: 'disk_full',
}

/** Statuses that only the compat API has: a file that is not text, and any failed write. */
const COMPAT_STATUS: ReadonlySet<number> = new Set([415, 500])

/** True when a message from a sandbox is safe to show: one line, no control or bidirectional characters. */
function isPrintable(text: string): boolean {
  return text !== '' && text.length <= MAX_MESSAGE_CHARS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text)
}

/** The current state of a file, for a request that expected another one. */
const current = z.object({
  kind: z.enum(['file', 'folder', 'link', 'special']).exactOptional(),
  size: z.int().min(0).exactOptional(),
  mode: z.int().min(0).exactOptional(),
  mtimeMs: z.number().exactOptional(),
  etag: z.string().max(200).refine(isPrintable).exactOptional(),
})
const workspaceError = z.object({
  /** Offset at which an upload continues. */
  received: z.int().min(0).exactOptional(),
  error: z.object({
    code: z.string(),
    message: z.string(),
    current: current.nullable().exactOptional(),
    reason: z.enum(GIT_FAILURE_REASONS).optional().catch(undefined),
  }),
})
const compatError = z.object({ detail: z.string() })
const parameterProblem = z.object({
  type: z.string().max(64),
  loc: z.array(z.union([z.string().max(64), z.int()])).max(8),
  msg: z.string().refine(isPrintable),
  input: z.unknown(),
  ctx: z.record(z.string().max(64), z.union([z.string().max(MAX_MESSAGE_CHARS), z.number()])).exactOptional(),
})
/** How the compat API reports invalid parameters. */
const compatProblems = z.object({ detail: z.array(parameterProblem).min(1).max(8) })

/** An error response of sandboxd. */
export type UpstreamError =
  | { readonly kind: 'error'; readonly error: SandwireError }
  /** A validated body with more fields than an error has, to be passed on. */
  | { readonly kind: 'body'; readonly code: ErrorCode; readonly body: (requestId: string) => unknown }

export function unavailable(retryAfterMs?: number): SandwireError {
  return new SandwireError('workspace_unavailable', 'The workspace of the sandbox is not available now', {
    retryAfterMs,
  })
}

/** The error for a code of sandboxd, with its message when that is safe to show. */
function errorOf(code: string, message: string, status: number): SandwireError {
  if (!isErrorCode(code) || ERRORS[code].status !== status) return statusError(status)
  const fallback = FILE_MESSAGES[code]
  if (fallback !== undefined) return new SandwireError(code, isPrintable(message) ? message : fallback)
  if (code === 'not_found')
    return new SandwireError(
      'version_unsupported',
      'The sandbox runs an old version of sandboxd; stop and start the sandbox',
    )
  return errorOfCode(code)
}

function statusError(status: number): SandwireError {
  return status === 503 ? unavailable() : invalidResponse()
}

function parseWorkspaceError(value: unknown, status: number): UpstreamError {
  const parsed = workspaceError.safeParse(value)
  if (!parsed.success) return { kind: 'error', error: statusError(status) }
  const { error: reported, received } = parsed.data
  const error = errorOf(reported.code, reported.message, status)
  const { code, message } = error
  const state = code === 'file_changed' ? reported.current : undefined
  const reason = code === 'git_failed' ? reported.reason : undefined
  const offset = code === 'conflict' ? received : undefined
  if (state === undefined && reason === undefined && offset === undefined) return { kind: 'error', error }
  return {
    kind: 'body',
    code,
    body: (request_id) => ({
      error: {
        code,
        message,
        request_id,
        ...(state === undefined ? {} : { current: state }),
        ...(reason === undefined ? {} : { reason }),
      },
      ...(offset === undefined ? {} : { received: offset }),
    }),
  }
}

function parseCompatError(value: unknown, status: number, code: string | null): UpstreamError {
  const problems = compatProblems.safeParse(value)
  if (problems.success && status === 422)
    return { kind: 'body', code: 'bad_request', body: () => problems.data }
  const parsed = compatError.safeParse(value)
  if (parsed.success && code !== null && COMPAT_STATUS.has(status))
    return compatOnlyError(parsed.data.detail, code, status)
  const known = code ?? CODE_OF_STATUS[status]
  if (!parsed.success || known === undefined) return { kind: 'error', error: statusError(status) }
  return { kind: 'error', error: errorOf(known, parsed.data.detail, status) }
}

/** An error with a status that only the compat API has, when it is about files. */
function compatOnlyError(detail: string, code: string, status: number): UpstreamError {
  const isKnown = isErrorCode(code) && FILE_MESSAGES[code] !== undefined && isPrintable(detail)
  return isKnown
    ? { kind: 'body', code, body: () => ({ detail }) }
    : { kind: 'error', error: statusError(status) }
}

export interface UpstreamErrorOptions {
  readonly api: 'native' | 'compat'
  readonly isHead: boolean
  /** Aborts reading. */
  readonly signal: AbortSignal
}

/** Parses an error response of sandboxd. Only known codes, printable messages and the validated fields are passed on. */
export async function readUpstreamError(
  response: Response,
  { api, isHead, signal }: UpstreamErrorOptions,
): Promise<UpstreamError> {
  const { status, headers } = response
  if (status < 400 || status > 599) {
    await response.body?.cancel()
    return { kind: 'error', error: invalidResponse() }
  }
  // A response to HEAD has no body.
  if (isHead) return { kind: 'error', error: errorOf(CODE_OF_STATUS[status] ?? '', '', status) }
  const value = await readBoundedJson(response, MAX_ERROR_BYTES, signal)
  const upstream =
    api === 'native'
      ? parseWorkspaceError(value, status)
      : parseCompatError(value, status, headers.get(CODE_HEADER))
  return upstream.kind === 'error'
    ? { kind: 'error', error: withRetryAfter(upstream.error, headers) }
    : upstream
}

/** The error with the `retry-after` of sandboxd. */
function withRetryAfter({ code, message, retryAfterMs }: SandwireError, headers: Headers): SandwireError {
  const seconds = /^[0-9]{1,4}$/.exec(headers.get('retry-after') ?? '')?.[0]
  const waitMs = seconds === undefined ? retryAfterMs : Number(seconds) * 1000
  return new SandwireError(code, message, { retryAfterMs: waitMs })
}
