import { SandwireError, schema } from '@sandwire/protocol'
import { readJson } from '../../http/request-body.ts'
import { respondJson } from '../../http/respond.ts'
import type { Files } from '../files.ts'
import type { Release, SemaphoreLimits } from '../semaphore.ts'
import { packFolder } from '../transfer/pack.ts'
import { unpack } from '../transfer/unpack.ts'
import { type UploadName, WrongOffset } from '../transfer/uploads.ts'
import { Query } from './parameters.ts'
import type { Workspace, WorkspaceCall } from './route.ts'

interface Dependencies {
  readonly workspace: Workspace
}

/** No request waits: an archive may take an hour. */
export const ARCHIVE_LIMITS: SemaphoreLimits = {
  capacity: 8,
  maxWaiting: 0,
  refusal: 'Cannot pack the folder: too many archives are being sent',
}

const UPLOAD_ID = /^[0-9a-f]{32}$/

const pathText: schema.Schema<string> = {
  decode: (value) => (typeof value === 'string' && value.length <= 4096 ? value : undefined),
  describe: 'path',
}
const milliseconds: schema.Schema<number> = {
  decode: (value) =>
    typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= 8.64e15 ? value : undefined,
  describe: 'ms',
}
const finishSchema = schema.record({
  path: pathText,
  size: schema.nonNegativeInteger,
  mode: schema.optional(schema.integer(0, 0o777)),
  mtimeMs: schema.optional(milliseconds),
  ifMatch: schema.optional(schema.text(256)),
})

export const TRANSFER_HANDLERS = {
  'GET /workspace/archive': readArchive,
  'PUT /workspace/archive': putArchive,
  'GET /workspace/uploads/:id': showUpload,
  'PUT /workspace/uploads/:id': putChunk,
  'POST /workspace/uploads/:id': finishUpload,
  'DELETE /workspace/uploads/:id': dropUpload,
}

/** `GET /workspace/archive`: a folder as tar. An error after the start breaks the connection. */
async function readArchive({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const query = new Query(url)
  const path = query.text('path', '.')
  const after = query.optional('after')
  const stat = await workspace.files.stat(path, { followsLink: true })
  if (stat.kind !== 'folder') throw new SandwireError('not_a_folder', 'Cannot pack the path: not a folder')
  const release = await workspace.archives.acquire(1, request.signal)
  const archive = packAndRelease(packFolder(path, { ...workspace, after, signal: request.signal }), release)
  request.signal.addEventListener('abort', () => void archive.return(), { once: true })
  // An error before the first part sets the status; later only the connection can be broken.
  const first = await archive.next()
  return new Response(streamOf(first, archive), {
    headers: {
      'content-type': 'application/x-tar',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

/** Releases the slot when the archive ends or is abandoned. The caller must start it: a generator that was never started runs no `finally`. */
async function* packAndRelease(
  archive: AsyncGenerator<Uint8Array, void, void>,
  release: Release,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* archive
  } finally {
    release()
  }
}

/** Packs on demand; only the first part is packed ahead. */
function streamOf(
  first: IteratorResult<Uint8Array, void>,
  archive: AsyncGenerator<Uint8Array, void, void>,
): ReadableStream<Uint8Array> {
  let waiting: IteratorResult<Uint8Array, void> | undefined = first
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = waiting ?? (await archive.next())
        waiting = undefined
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: async () => void (await archive.return()),
    },
    { highWaterMark: 0 },
  )
}

/** `PUT /workspace/archive`: unpacks a tar archive into a folder. */
async function putArchive({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const folder = new Query(url).text('path', '.')
  const { files, transfer } = workspace
  const depth = await realDepth(folder, files)
  const answer = await unpack(request.body ?? empty(), transfer, { folder, depth })
  return respondJson(answer)
}

async function* empty(): AsyncGenerator<Uint8Array> {}

/** Number of real folders from the workspace to a folder; 0 when a link is on the path. */
async function realDepth(folder: string, files: Pick<Files, 'stat'>): Promise<number> {
  const names = folder.split('/').filter((name) => name !== '' && name !== '.')
  if (names.includes('..')) return 0
  for (const at of names.keys()) {
    const { kind } = await files.stat(names.slice(0, at + 1).join('/'))
    if (kind !== 'folder') return 0
  }
  return names.length
}

function nameOf(id: string, path: string): UploadName {
  if (!UPLOAD_ID.test(id))
    throw new SandwireError('bad_request', 'Cannot use the upload: its id must be 32 hex digits')
  return { id, path }
}

async function showUpload({ url, id }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const received = await workspace.uploads.received(nameOf(id, new Query(url).text('path')))
  return respondJson({ received })
}

async function putChunk(
  { url, id, request, requestId }: WorkspaceCall,
  { workspace }: Dependencies,
): Promise<Response> {
  const query = new Query(url)
  const name = nameOf(id, query.text('path'))
  const offset = query.integer('offset', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0
  try {
    return respondJson({ received: await workspace.uploads.append(name, offset, request.body ?? empty()) })
  } catch (error) {
    if (!(error instanceof WrongOffset)) throw error
    const { code, message, received } = error
    return respondJson(
      { error: { code, message, request_id: requestId }, received },
      { status: error.info.status, headers: { 'x-request-id': requestId } },
    )
  }
}

async function finishUpload({ id, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const body = finishSchema.decode(await readJson(request))
  if (body === undefined)
    throw new SandwireError('bad_request', 'Cannot read the body: it does not describe an upload')
  const { path, size, mode, mtimeMs, ifMatch } = body
  const { etag } = await workspace.uploads.finish(nameOf(id, path), {
    sizeBytes: size,
    ...(mode === undefined ? {} : { mode }),
    ...(mtimeMs === undefined ? {} : { mtimeNs: String(BigInt(Math.round(mtimeMs * 1000)) * 1000n) }),
    ...(ifMatch === undefined ? {} : { ifMatch: [ifMatch.replace(/^"(.*)"$/, '$1')] }),
  })
  return respondJson({ path, etag, size })
}

async function dropUpload({ url, id }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  return respondJson({ dropped: await workspace.uploads.drop(nameOf(id, new Query(url).text('path'))) })
}
