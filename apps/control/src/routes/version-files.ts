import { z } from '@hono/zod-openapi'
import { pathFromBytes, pathToBytes, SandwireError } from '@sandwire/protocol'
import {
  compareBytes,
  type FileEntry,
  type FolderIndex,
  isSafePath,
  latin1Bytes,
  type ManifestEntry,
} from '@sandwire/version-format'
import type { Context } from 'hono'
import { COMMON_HEADERS } from '../http/respond.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { ReadBudget } from '../versions/read-budget.ts'
import type { SegmentStore } from '../versions/segment-store.ts'
import { VersionReader } from '../versions/version-reader.ts'
import type { Version } from '../versions/version-store.ts'
import { ZSTANDARD } from '../versions/zstandard.ts'
import { type App, type AppEnv, callOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { sandboxParams } from './schemas.ts'
import { versionName } from './version-schemas.ts'

/** Entries in one response. */
const MAX_ENTRIES = 10_000
/** Bytes of content that take as long as one byte of a manifest. */
const CONTENT_PER_MANIFEST = 8

const filesQuery = z.strictObject({
  version: versionName.exactOptional().openapi({ description: 'Name or number; default: the newest.' }),
  after: z.string().max(1024).exactOptional().openapi({ description: 'Continue after this name.' }),
})
const savedEntry = z
  .object({
    name: z.string(),
    kind: z.enum(['file', 'folder', 'link', 'fifo']),
    sizeBytes: z.int().nullable().openapi({ description: 'Null unless it is a file.' }),
    mode: z.int(),
    mtimeMs: z.number(),
    target: z.string().exactOptional().openapi({ description: 'Of a symlink.' }),
  })
  .openapi('SavedEntry')
const savedFolder = z
  .object({
    version: z.int(),
    savedMs: z.int(),
    path: z.string(),
    entries: z.array(savedEntry),
    isComplete: z.boolean().openapi({ description: 'False: more entries follow the last one.' }),
  })
  .openapi('SavedFolder')

const pathParam = z.string().openapi({
  param: { name: 'path', in: 'path' },
  description:
    'Begins with `workspace` or `home`; may contain slashes. Bytes that are not UTF-8 are percent-encoded.',
})

export interface VersionFileDependencies {
  readonly lookup: SandboxLookup
  /** Undefined: files are not saved. */
  readonly segments: SegmentStore | undefined
  readonly versionReads: ReadBudget
}

/** `/files/:sandbox/*path`: saved files, without starting the sandbox. */
export function addVersionFileRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, segments, versionReads }: VersionFileDependencies,
): void {
  const respond = async (context: Context<AppEnv>): Promise<Response> => {
    const call = callOf(context)
    const query = readQuery(context.req.url)
    const path = readPath(context.req.url)
    const id = await lookup.resolve(call.identity, parseSandboxRef(context.req.param('sandbox') ?? ''))
    const content = unwrap(await lookup.sandbox(id).versionContent(call, query.version))
    if (segments === undefined) throw new SandwireError('not_found', 'This server does not save files')
    return versionReads.run(call.identity, async (charge) => {
      const reader = new VersionReader(segments, ZSTANDARD, content, charge)
      const index = await reader.index()
      const entry = index.find(path)
      if (path === '' || entry?.kind === 'folder')
        return context.json(listFolder(index, content.version, path, query.after), 200)
      if (entry === undefined) throw new SandwireError('file_not_found', 'No file or folder is at this path')
      if (entry.kind !== 'file')
        throw new SandwireError('special_file', 'Cannot download this: it is neither a file nor a folder')
      charge(entry.sizeBytes / CONTENT_PER_MANIFEST)
      return download(reader, entry, content.version)
    })
  }
  const described = {
    method: 'get',
    request: { params: sandboxParams, query: filesQuery },
    responses: {
      200: {
        description: 'Of a folder its entries as JSON, of a file (at most 64 MiB) its bytes',
        content: {
          'application/json': { schema: savedFolder },
          'application/octet-stream': { schema: z.string().openapi({ format: 'binary' }) },
        },
      },
    },
  } as const
  const top = endpoint(guardOf, { ...described, path: '/files/{sandbox}' })
  const below = endpoint(guardOf, {
    ...described,
    path: '/files/{sandbox}/{path}',
    request: { ...described.request, params: sandboxParams.extend({ path: pathParam }) },
  })
  // The path may have slashes, which a parameter of OpenAPI cannot express.
  for (const [route, path] of [
    [top, '/files/:sandbox'],
    [below, '/files/:sandbox/:path{.*}'],
  ] as const) {
    app.openAPIRegistry.registerPath(route)
    for (const middleware of route.middleware) app.get(path, middleware)
    app.get(path, respond)
  }
}

function readQuery(url: string): z.infer<typeof filesQuery> {
  const query = filesQuery.safeParse(Object.fromEntries(new URL(url).searchParams))
  if (query.success) return query.data
  const [name] = query.error.issues[0]?.path ?? []
  throw new SandwireError(
    'bad_request',
    `Cannot use the query: ${String(name ?? 'a parameter')} is not accepted`,
  )
}

/** The path below `/files/SANDBOX/`, one character per byte. */
function readPath(url: string): string {
  const encoded = new URL(url).pathname
    .split('/')
    .slice(3)
    .filter((name) => name !== '')
    .join('/')
  const malformed = (): SandwireError => new SandwireError('path_refused', 'Cannot use the path: malformed')
  if (/%(?![0-9A-Fa-f]{2})/.test(encoded)) throw malformed()
  const path = encoded.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (!isSafePath(path)) throw malformed()
  return path
}

function listFolder(
  index: FolderIndex,
  { number, createdMs }: Version,
  path: string,
  after: string | undefined,
): z.infer<typeof savedFolder> {
  const all = index.entries(path) ?? []
  const start = after === undefined ? undefined : pathToBytes(after)
  const left = start === undefined ? all : all.filter(({ name }) => compareBytes(name, start) > 0)
  return {
    version: number,
    savedMs: createdMs,
    path: pathFromBytes(latin1Bytes(path)),
    entries: left.slice(0, MAX_ENTRIES).map(toEntry),
    isComplete: left.length <= MAX_ENTRIES,
  }
}

function toEntry(entry: ManifestEntry): z.infer<typeof savedEntry> {
  return {
    name: pathFromBytes(entry.name),
    kind: entry.kind,
    sizeBytes: entry.kind === 'file' ? entry.sizeBytes : null,
    mode: entry.mode,
    mtimeMs: entry.seconds * 1000 + entry.nanos / 1e6,
    ...(entry.kind === 'link' ? { target: pathFromBytes(entry.target) } : {}),
  }
}

/** Responds with the bytes; the first block is read before, so that its errors are responses. */
async function download(reader: VersionReader, entry: FileEntry, { number }: Version): Promise<Response> {
  const blocks = reader.blocks(entry)
  const first = await blocks.next()
  const { readable, writable } = new FixedLengthStream(entry.sizeBytes)
  const write = async (): Promise<void> => {
    const writer = writable.getWriter()
    try {
      for (let block = first; block.done !== true; block = await blocks.next())
        await writer.write(block.value)
      await writer.close()
    } catch (error) {
      await writer.abort(error)
    }
  }
  // Ends with the response: the client's disconnect fails the next write.
  void write().catch(() => undefined)
  return new Response(readable, {
    headers: {
      ...COMMON_HEADERS,
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment',
      'last-modified': new Date(entry.seconds * 1000).toUTCString(),
      'x-sandwire-version': String(number),
    },
  })
}
