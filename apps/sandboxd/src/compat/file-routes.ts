import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import {
  missing,
  printablePath,
  readStringFields,
  respondCompatError,
  respondUnprocessable,
  type ValidationProblem,
  withMessages,
} from './responses.ts'
import { parseJson, readBytes } from '../http/request-body.ts'
import { respondJson } from '../http/respond.ts'
import type { Entry, Files } from '../workspace/files.ts'
import { pathIn } from '../workspace/beneath/path.ts'
import { reserveText, MAX_BODY_BYTES, MAX_TEXT_BYTES, readText, respondText } from './json-text.ts'
import { readCondition, store } from '../workspace/routes/file-content.ts'
import { respondListing } from '../workspace/routes/listing-response.ts'
import { Query } from '../workspace/routes/parameters.ts'
import type { Workspace, WorkspaceCall } from '../workspace/routes/route.ts'

interface Dependencies {
  readonly workspace: Workspace
}

/** Entries of one folder; the older API has no field for a truncated listing. */
const MAX_ENTRIES = 20_000
const LIST_MS = 5_000
const STATUS_NOT_TEXT = 415
/** For every failed write except a path outside the workspace. */
const STATUS_WRITE_FAILED = 500

/** File routes of the older API: texts in JSON, one folder level at a time, errors as `{"detail": …}`. */
export const FILE_HANDLERS = {
  'GET /workspace/compat/tree': tree,
  'GET /workspace/compat/file': read,
  'PUT /workspace/compat/file': write,
  'DELETE /workspace/compat/file': remove,
  'POST /workspace/compat/file/rename': rename,
  'POST /workspace/compat/file/move': move,
}

/** If the parameter is repeated, the last value counts. An empty path is the workspace. */
function pathOf(url: URL): string | undefined {
  return new Query(url).all('path').at(-1)
}

function orRoot(path: string): string {
  return path === '' ? '.' : path
}

/** `GET /api/tree` */
async function tree({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const path = pathOf(url) ?? '.'
  const messages = { not_a_folder: `Path is not a directory: ${printablePath(path)}` }
  const list = async (): Promise<object> => {
    const listed = await withMessages(path, messages, () => listOrEmpty(workspace.files, orRoot(path)))
    const entries = await Promise.all(listed.map((entry) => viewEntry(workspace.files, path, entry)))
    entries.sort(byKindAndName)
    return { entries: entries.map(({ view }) => view), path }
  }
  return respondListing(list, { memory: workspace.texts, signal: request.signal })
}

async function listOrEmpty(files: Files, path: string): Promise<readonly Entry[]> {
  try {
    return (await files.list(path, { maxEntries: MAX_ENTRIES, timeMs: LIST_MS })).entries
  } catch (caught) {
    if (caught instanceof SandwireError && caught.code === 'file_not_found') return []
    throw caught
  }
}

interface CompatEntry {
  readonly view: Readonly<Record<string, string | number | boolean>>
  readonly isFolder: boolean
  /** Sort key: the UTF-8 bytes of the lower-cased name, one per character. */
  readonly key: string
}

async function viewEntry(files: Files, folder: string, entry: Entry): Promise<CompatEntry> {
  const { name } = entry
  const path = pathIn(folder, name)
  const kind = entry.kind === 'link' ? entry.target : entry.kind
  const isFolder = kind === 'folder'
  const size = entry.kind === 'link' && kind === 'file' ? await readTargetSize(files, path) : entry.sizeBytes
  return {
    view: { name, path, is_dir: isFolder, ...(kind === 'file' ? { size } : {}) },
    isFolder,
    key: Buffer.from(name.toLowerCase()).toString('latin1'),
  }
}

async function readTargetSize(files: Files, path: string): Promise<number> {
  try {
    return (await files.stat(path, { followsLink: true })).sizeBytes
  } catch {
    // Removed since it was listed.
    return 0
  }
}

function byKindAndName(left: CompatEntry, right: CompatEntry): number {
  if (left.isFolder !== right.isFolder) return left.isFolder ? -1 : 1
  return left.key < right.key ? -1 : left.key > right.key ? 1 : 0
}

/** `GET /api/file`: texts only. */
async function read(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { url, request, requestId } = call
  const path = pathOf(url)
  if (path === undefined) return respondUnprocessable([missing(['query', 'path'])])
  const messages = {
    ...notFound(path),
    is_a_folder: `Path is a directory: ${printablePath(path)}`,
    file_too_large: `File is too large to show: ${printablePath(path)} (more than ${MAX_TEXT_BYTES} bytes)`,
  }
  const budget = { memory: workspace.texts, signal: request.signal }
  const held = await withMessages(path, messages, () => readText(workspace.files, orRoot(path), budget))
  if (held !== undefined) return respondText(held, path, request.signal)
  const error = new SandwireError('bad_request', `File is not text: ${printablePath(path)}`)
  return respondCompatError(error, requestId, STATUS_NOT_TEXT)
}

/** Parses the JSON body; `undefined` when there is none. */
async function readBody(
  request: Request,
): Promise<{ readonly body: unknown } | { readonly problems: readonly ValidationProblem[] }> {
  try {
    const bytes = await readBytes(request, MAX_BODY_BYTES)
    // A chunked body may be empty.
    return { body: bytes.length === 0 ? undefined : parseJson(bytes) }
  } catch (caught) {
    if (!(caught instanceof SandwireError && caught.code === 'bad_request')) throw caught
    const ctx = { error: 'Expecting value' }
    return {
      problems: [{ type: 'json_invalid', loc: ['body', 0], msg: 'JSON decode error', input: {}, ctx }],
    }
  }
}

async function readBodyFields<const Name extends string>(
  request: Request,
  names: readonly Name[],
): Promise<ReturnType<typeof readStringFields<Name>>> {
  const read = await readBody(request)
  return 'problems' in read ? read : readStringFields(read.body, names)
}

/** `PUT /api/file`: creates missing parent folders. */
async function write(call: WorkspaceCall, deps: Dependencies): Promise<Response> {
  const { request } = call
  const length = Number(request.headers.get('content-length') ?? MAX_BODY_BYTES)
  const release = await reserveText(length, { memory: deps.workspace.texts, signal: request.signal })
  try {
    return await writeText(call, deps)
  } finally {
    release()
  }
}

async function writeText(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { url, request, requestId } = call
  const path = pathOf(url)
  const body = await readBodyFields(request, ['content'])
  if (path === undefined || 'problems' in body)
    return respondUnprocessable([
      ...(path === undefined ? [missing(['query', 'path'])] : []),
      ...('problems' in body ? body.problems : []),
    ])
  const { content } = body.fields
  if (!content.isWellFormed()) return respondUnprocessable([notUnicode(content)])
  const bytes = Buffer.from(content)
  if (bytes.byteLength > MAX_TEXT_BYTES)
    throw new SandwireError('file_too_large', `Write failed: more than ${MAX_TEXT_BYTES} bytes`)
  const condition = readCondition(request.headers)
  try {
    await withMessages(path, {}, () =>
      store(workspace.files, orRoot(path), { ...condition, makesParents: true, followsLink: true }, [bytes]),
    )
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.code === 'path_refused' || error.code === 'file_changed') throw error
    const failed = new SandwireError(error.code, `Write failed: ${error.message}`)
    return respondCompatError(failed, requestId, STATUS_WRITE_FAILED)
  }
  return respondJson({ success: true, path })
}

function notUnicode(content: string): ValidationProblem {
  const msg = 'Input should be a valid string, unable to parse raw data as a unicode string'
  return {
    type: 'string_unicode',
    loc: ['body', 'content'],
    msg,
    input: content.toWellFormed().slice(0, 100),
  }
}

/** `DELETE /api/file`: removes a folder with its contents. */
async function remove({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const path = pathOf(url)
  if (path === undefined) return respondUnprocessable([missing(['query', 'path'])])
  const messages = notFound(path)
  const removal = { ...readCondition(request.headers), recursive: true }
  await withMessages(path, messages, () => workspace.files.remove(orRoot(path), removal, request.signal))
  return respondJson({ success: true, path })
}

function notFound(path: string): Partial<Record<ErrorCode, string>> {
  return { file_not_found: `File not found: ${printablePath(path)}` }
}

/** `POST /api/file/rename` */
async function rename({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const body = await readBodyFields(request, ['old_path', 'new_path'])
  if ('problems' in body) return respondUnprocessable(body.problems)
  const { old_path, new_path } = body.fields
  const messages = { ...notFound(old_path), file_exists: `Target exists: ${printablePath(new_path)}` }
  const { files } = workspace
  // Checked first, because an error of rename does not say which of the two paths it is about.
  await withMessages(old_path, messages, () => files.stat(orRoot(old_path)))
  await withMessages(new_path, messages, () =>
    files.rename(orRoot(old_path), orRoot(new_path), { replaces: false }, request.signal),
  )
  return respondJson({ success: true, old_path, new_path })
}

/** `POST /api/file/move`: moves into a folder and keeps the name. */
async function move({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const body = await readBodyFields(request, ['src_path', 'dest_dir'])
  if ('problems' in body) return respondUnprocessable(body.problems)
  const { src_path, dest_dir } = body.fields
  const { files } = workspace
  await withMessages(src_path, notFound(src_path), () => files.stat(orRoot(src_path)))
  await checkDestinationFolder(files, dest_dir)
  const name = src_path.split('/').findLast((each) => each !== '' && each !== '.') ?? '.'
  const dest_path = pathIn(dest_dir, name)
  const messages = {
    ...notFound(src_path),
    file_exists: `Target exists in destination: ${printablePath(dest_dir)}`,
  }
  await withMessages(src_path, messages, () =>
    files.rename(orRoot(src_path), dest_path, { replaces: false }, request.signal),
  )
  return respondJson({ success: true, old_path: src_path, dest_path })
}

async function checkDestinationFolder(files: Files, path: string): Promise<void> {
  const not = `Destination is not a directory: ${printablePath(path)}`
  const { kind } = await withMessages(path, {}, () =>
    files.stat(orRoot(path), { followsLink: true }).catch((caught: unknown) => {
      const error = SandwireError.from(caught)
      if (error.code !== 'file_not_found' && error.code !== 'not_a_folder') throw error
      throw new SandwireError('not_a_folder', not)
    }),
  )
  if (kind !== 'folder') throw new SandwireError('not_a_folder', not)
}
