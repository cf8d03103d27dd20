import { closeSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { respondError, respondJson } from '../../http/respond.ts'
import type { Condition, Entry, FileStat, Files, NewFile, OpenFile } from '../files.ts'
import { readBytes, type Span, streamBytes, writeBytes } from '../files/file-bytes.ts'
import { Query } from './parameters.ts'
import type { Workspace, WorkspaceCall } from './route.ts'

interface Dependencies {
  readonly workspace: Workspace
}

/** Files up to this size are read before the response starts, so that an error can set the status. */
const AT_ONCE_BYTES = 256 * 1024

/** Latest time that a request may set: the year 9999. */
const MAX_MTIME_MS = 253_402_300_799_999

function describe(stat: FileStat): Record<string, string> {
  return {
    etag: `"${stat.etag}"`,
    'accept-ranges': 'bytes',
    'content-type': 'application/octet-stream',
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
    'last-modified': new Date(Number(BigInt(stat.mtimeNs) / 1_000_000n)).toUTCString(),
    /** Size of the whole file: a stream has no `content-length`. */
    'sandwire-size': String(stat.sizeBytes),
  }
}

/** `GET /workspace/file`: the bytes of a file, or one range of them. */
export async function readFile(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { headers } = call.request
  const file = await workspace.files.open(new Query(call.url).text('path'))
  const span = chooseSpan(headers, file.stat)
  const answer = typeof span === 'object' ? undefined : refuseSpan(span, file.stat, call.requestId)
  if (typeof span === 'object') return respondSpan(file, span)
  closeSync(file.fd)
  return answer ?? respondJson({})
}

/** `HEAD /workspace/file` */
export async function describeFile(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { fd, stat } = await workspace.files.open(new Query(call.url).text('path'))
  closeSync(fd)
  const span = chooseSpan(call.request.headers, stat)
  if (typeof span === 'string') return refuseSpan(span, stat, call.requestId)
  return new Response(null, {
    status: span.isWhole ? 200 : 206,
    headers: {
      ...describe(stat),
      ...spanHeaders(span, stat),
      'content-length': String(span.end - span.start),
    },
  })
}

interface ChosenSpan extends Span {
  readonly isWhole: boolean
}

/** Evaluates the conditional and range headers. */
function chooseSpan(headers: Headers, stat: FileStat): ChosenSpan | 'unchanged' | 'changed' | 'none' {
  const has = (tags: readonly string[]): boolean => tags.includes('*') || tags.includes(stat.etag)
  const ifMatch = parseTags(headers.get('if-match'))
  if (ifMatch !== undefined && !has(ifMatch)) return 'changed'
  const ifNoneMatch = parseTags(headers.get('if-none-match'))
  if (ifNoneMatch !== undefined && has(ifNoneMatch)) return 'unchanged'
  const ifRange = headers.get('if-range')
  const isSame = ifRange === null || ifRange.trim() === `"${stat.etag}"`
  const range = isSame ? parseRange(headers.get('range'), stat.sizeBytes) : 'all'
  if (range === 'none') return 'none'
  return range === 'all' ? { start: 0, end: stat.sizeBytes, isWhole: true } : { ...range, isWhole: false }
}

function refuseSpan(why: 'unchanged' | 'changed' | 'none', stat: FileStat, requestId: string): Response {
  switch (why) {
    case 'unchanged':
      return new Response(null, { status: 304, headers: describe(stat) })
    case 'changed':
      return respondChanged('Cannot read the file: it has changed', stat, requestId)
    case 'none': {
      const error = new SandwireError(
        'range_refused',
        `Cannot read this range: the file has ${stat.sizeBytes} bytes`,
      )
      const response = respondError(error, requestId)
      response.headers.set('content-range', `bytes */${stat.sizeBytes}`)
      return response
    }
  }
}

function spanHeaders({ start, end, isWhole }: ChosenSpan, stat: FileStat): Record<string, string> {
  return isWhole ? {} : { 'content-range': `bytes ${start}-${end - 1}/${stat.sizeBytes}` }
}

async function respondSpan(file: OpenFile, span: ChosenSpan): Promise<Response> {
  const headers = { ...describe(file.stat), ...spanHeaders(span, file.stat) }
  const status = span.isWhole ? 200 : 206
  if (span.end - span.start > AT_ONCE_BYTES) return new Response(streamBytes(file, span), { status, headers })
  const chunks = await Array.fromAsync(readBytes(file, span))
  return new Response(new Blob(chunks), { status, headers })
}

/** Responds 412 with the current state of the file. */
function respondChanged(message: string, stat: FileStat | undefined, requestId: string): Response {
  const current = stat === undefined ? null : viewStat(stat)
  const error = { code: 'file_changed', message, request_id: requestId, current }
  const headers = { 'x-request-id': requestId, ...(stat === undefined ? {} : { etag: `"${stat.etag}"` }) }
  return respondJson({ error }, { status: 412, headers })
}

/** Runs a change; responds with the current state when the precondition fails. */
export async function orChanged(
  call: WorkspaceCall,
  files: Files,
  change: { readonly path: string; readonly run: () => Promise<Response> },
): Promise<Response> {
  try {
    return await change.run()
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.code !== 'file_changed') throw error
    const current = await files.stat(change.path, { followsLink: true }).catch(() => undefined)
    return respondChanged(error.message, current, call.requestId)
  }
}

/** `PUT /workspace/file`: replaces the file atomically once the whole body has arrived. */
export async function writeFile(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const query = new Query(call.url)
  const path = query.text('path')
  const mode = query.integer('mode', { min: 0, max: 0o777 })
  const mtimeMs = query.integer('mtimeMs', { min: 0, max: MAX_MTIME_MS })
  const file: NewFile = {
    ...readCondition(call.request.headers),
    followsLink: true,
    makesParents: query.flag('parents'),
    ...(mode === undefined ? {} : { mode }),
    ...(mtimeMs === undefined ? {} : { mtimeNs: nanoseconds(mtimeMs) }),
  }
  const run = async (): Promise<Response> => {
    const stat = await store(workspace.files, path, file, bodyOf(call.request))
    return respondJson(
      { path, etag: stat.etag, size: stat.sizeBytes },
      { headers: { etag: `"${stat.etag}"` } },
    )
  }
  return orChanged(call, workspace.files, { path, run })
}

/** The request body. If it is refused halfway, the rest is not canceled, so that the response arrives. */
function bodyOf({ body }: Request): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  return body?.values({ preventCancel: true }) ?? []
}

/** Writes a file from a source; on failure nothing remains. */
export async function store(
  files: Files,
  path: string,
  file: NewFile,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<FileStat> {
  const { fd, id } = await files.create(path, file)
  try {
    await writeBytes(fd, source)
  } catch (error) {
    await files.discard(id)
    throw error
  }
  return files.commit(id)
}

/**
 * Parses a `Range` header: one span; `all` when there is none, several, or an invalid one (as HTTP requires); `none` when it is
 * outside the file.
 */
function parseRange(header: string | null, sizeBytes: number): Span | 'all' | 'none' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  const [, first = '', last = ''] = match ?? []
  if (match === null || (first === '' && last === '')) return 'all'
  if (first === '') return suffix(Number(last), sizeBytes)
  const start = Number(first)
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes)
  if (last !== '' && Number(last) < start) return 'all'
  return start >= sizeBytes ? 'none' : { start, end }
}

function suffix(count: number, sizeBytes: number): Span | 'none' {
  return count === 0 || sizeBytes === 0 ? 'none' : { start: Math.max(0, sizeBytes - count), end: sizeBytes }
}

const MAX_TAGS = 64

/**
 * Parses etags of a header such as `If-Match`; `*` matches any. Weak etags never match. Etags without quotes, as in JSON
 * responses, are accepted.
 */
function parseTags(header: string | null): readonly string[] | undefined {
  if (header === null) return undefined
  const tags = header.split(',', MAX_TAGS + 1).map((tag) => tag.trim())
  if (tags.length > MAX_TAGS)
    throw new SandwireError('bad_request', 'Cannot use the condition: too many etags')
  return tags.filter((tag) => !tag.startsWith('W/')).map((tag) => /^"(.*)"$/.exec(tag)?.[1] ?? tag)
}

/** Reads the precondition headers; throws `bad_request`. */
export function readCondition(headers: Headers): Condition {
  const ifMatch = parseTags(headers.get('if-match'))
  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== null && ifNoneMatch.trim() !== '*')
    throw new SandwireError('bad_request', 'Cannot use If-None-Match here: expected *')
  return {
    ...(ifMatch === undefined ? {} : { ifMatch }),
    ...(ifNoneMatch === null ? {} : { ifAbsent: true }),
  }
}

const NS_PER_MS = 1_000_000n

/** The JSON of a file's status. */
export function viewStat(stat: FileStat & Pick<Entry, 'target'>): Record<string, string | number> {
  const { kind, sizeBytes, mode, mtimeNs, etag, target } = stat
  return {
    kind,
    size: sizeBytes,
    mode,
    mtimeMs: Number(BigInt(mtimeNs) / NS_PER_MS),
    etag,
    ...(target === undefined ? {} : { target }),
  }
}

/** Converts milliseconds to nanoseconds. */
function nanoseconds(mtimeMs: number): string {
  return (BigInt(mtimeMs) * NS_PER_MS).toString()
}
