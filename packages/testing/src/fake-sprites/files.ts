import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { SpritesBehavior } from './behavior.ts'
import type { FakeSprite } from './sprite.ts'

function typeOf(file: string): 'file' | 'directory' | 'symlink' {
  const found = lstatSync(file)
  if (found.isSymbolicLink()) return 'symlink'
  return found.isDirectory() ? 'directory' : 'file'
}

function describeEntry(file: string, shown: string): object {
  const found = lstatSync(file)
  const type = typeOf(file)
  return {
    name: path.basename(shown),
    path: shown,
    type,
    size: found.size,
    mode: `0${(found.mode & 0o777).toString(8)}`,
    modTime: found.mtime.toISOString(),
    isDir: type === 'directory',
  }
}

function missing(shown: string, { hasErrorCodes }: SpritesBehavior): Response {
  const error = `open ${shown}: no such file or directory`
  return Response.json({ error, path: shown, ...(hasErrorCodes && { code: 'ENOENT' }) }, { status: 404 })
}

/** A request about a file. */
interface FileRequest {
  readonly sprite: FakeSprite
  readonly request: Request
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, string>>
  /** Its path on this machine, and as the client wrote it. */
  readonly file: string
  readonly shown: string
  /** The target of a copy or rename, on this machine. */
  readonly dest: string
  readonly behavior: SpritesBehavior
}

async function writeWhole({ request, query, file, shown }: FileRequest): Promise<Response> {
  const bytes = new Uint8Array(await request.arrayBuffer())
  const mode = query.get('mode') ?? '0644'
  mkdirSync(path.dirname(file), { recursive: true })
  // A new file, as a program that is running cannot be written to.
  rmSync(file, { force: true })
  writeFileSync(file, bytes)
  chmodSync(file, Number.parseInt(mode, 8))
  return Response.json({ path: shown, size: bytes.length, mode })
}

function list({ file, shown, behavior }: FileRequest): Response {
  const entries =
    typeOf(file) === 'directory'
      ? readdirSync(file).map((name) => describeEntry(path.join(file, name), path.join(shown, name)))
      : [describeEntry(file, shown)]
  const listed = entries.length === 0 && behavior.listsEmptyAsNull ? null : entries
  return Response.json({ path: shown, entries: listed, count: entries.length })
}

const OPERATIONS: Readonly<Record<string, (request: FileRequest) => Response | Promise<Response>>> = {
  'GET read': ({ file }) =>
    typeOf(file) === 'directory'
      ? Response.json({ error: 'is a directory' }, { status: 400 })
      : new Response(Bun.file(file)),
  'PUT write': writeWhole,
  'GET list': list,
  'DELETE delete': ({ file, shown, query }) => {
    lstatSync(file)
    rmSync(file, { recursive: query.get('recursive') === 'true' })
    return Response.json({ deleted: [shown], count: 1 })
  },
  'POST rename': ({ file, shown, dest }) => {
    renameSync(file, dest)
    return Response.json({ source: shown, dest })
  },
  'POST copy': ({ file, shown, dest }) => {
    cpSync(file, dest, { recursive: true })
    return Response.json({ copied: [{ source: shown, dest }], count: 1, totalBytes: lstatSync(file).size })
  },
  'POST chmod': ({ file, shown, body }) => {
    chmodSync(file, Number.parseInt(body['mode'] ?? '0644', 8))
    return Response.json({ affected: [{ path: shown, mode: body['mode'] }], count: 1 })
  },
}

/** The file system routes, `/fs/OPERATION`. */
export async function handleFiles(
  sprite: FakeSprite,
  operation: string,
  request: Request,
  behavior: SpritesBehavior,
): Promise<Response> {
  const query = new URL(request.url).searchParams
  const body = request.method === 'POST' ? ((await request.json()) as Readonly<Record<string, string>>) : {}
  const workingDir = body['workingDir'] ?? query.get('workingDir') ?? ''
  const shown = body['path'] ?? body['source'] ?? query.get('path') ?? ''
  const run = OPERATIONS[`${request.method} ${operation}`]
  if (run === undefined) return Response.json({ error: 'not found' }, { status: 404 })
  const file = sprite.resolve(shown, workingDir)
  const dest = sprite.resolve(body['dest'] ?? '', workingDir)
  try {
    return await run({ sprite, request, query, body, file, shown, dest, behavior })
  } catch {
    return missing(shown, behavior)
  }
}
