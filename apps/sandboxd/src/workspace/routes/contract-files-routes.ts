import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { readJson } from '../../http/request-body.ts'
import { respondDetail, respondJson } from '../../http/respond.ts'
import type { Entry, Files } from '../files.ts'
import { pathIn } from '../path-in.ts'
import { holdText, MAX_BODY_BYTES, MAX_TEXT_BYTES, readText, respondText } from './contract-text.ts'
import { inWords, shown } from './contract-words.ts'
import { readCondition } from './etags.ts'
import { store } from './file-content.ts'
import { respondListing } from './held-answer.ts'
import { Query } from './query.ts'
import type { Workspace, WorkspaceCall, WorkspaceRoutes } from './route.ts'
import { type Flaw, missing, readTexts, respondFlaws } from './unprocessable.ts'

interface Dependencies {
  readonly workspace: Workspace
}

/** Names of one folder that are shown; the contract has no word for more. */
const MAX_ENTRIES = 20_000
const LIST_MS = 5_000
const STATUS_NOT_TEXT = 415
/** Whatever goes wrong when something is written, but for a path that leads out. */
const STATUS_WRITE_FAILED = 500

/** Files as the contract has them: texts, one level of a folder, and errors with a `detail`. */
export const CONTRACT_FILES_ROUTES: WorkspaceRoutes = {
  '/workspace/contract/tree': { GET: { right: 'read', parameters: 'any', handle: tree } },
  '/workspace/contract/file': {
    GET: { right: 'read', parameters: 'any', handle: read },
    PUT: { right: 'change', parameters: 'any', handle: write },
    DELETE: { right: 'change', parameters: 'any', handle: remove },
  },
  '/workspace/contract/file/rename': { POST: { right: 'change', parameters: 'any', handle: rename } },
  '/workspace/contract/file/move': { POST: { right: 'change', parameters: 'any', handle: move } },
}

/** Of a parameter that is given twice the last one counts. An empty path is the workspace. */
function pathOf(url: URL): string | undefined {
  return new Query(url).all('path').at(-1)
}

function orRoot(path: string): string {
  return path === '' ? '.' : path
}

/** `GET /api/tree` */
async function tree({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const path = pathOf(url) ?? '.'
  const words = { not_a_folder: `Path is not a directory: ${shown(path)}` }
  const list = async (): Promise<object> => {
    const listed = await inWords(path, words, () => listOrNothing(workspace.files, orRoot(path)))
    const entries = await Promise.all(listed.map((entry) => viewEntry(workspace.files, path, entry)))
    entries.sort(byKindAndName)
    return { entries: entries.map(({ view }) => view), path }
  }
  return respondListing(list, { texts: workspace.texts, signal: request.signal })
}

async function listOrNothing(files: Files, path: string): Promise<readonly Entry[]> {
  try {
    return (await files.list(path, { maxEntries: MAX_ENTRIES, timeMs: LIST_MS })).entries
  } catch (caught) {
    if (caught instanceof SandwireError && caught.code === 'file_not_found') return []
    throw caught
  }
}

interface ContractEntry {
  readonly view: Readonly<Record<string, string | number | boolean>>
  readonly isFolder: boolean
  /** One character per byte of the lower-cased name: bytes of UTF-8 are in the order of characters. */
  readonly key: string
}

async function viewEntry(files: Files, folder: string, entry: Entry): Promise<ContractEntry> {
  const { name } = entry
  const path = pathIn(folder, name)
  const kind = entry.kind === 'link' ? entry.target : entry.kind
  const isFolder = kind === 'folder'
  const size = entry.kind === 'link' && kind === 'file' ? await sizeBehind(files, path) : entry.sizeBytes
  return {
    view: { name, path, is_dir: isFolder, ...(kind === 'file' ? { size } : {}) },
    isFolder,
    key: Buffer.from(name.toLowerCase()).toString('latin1'),
  }
}

async function sizeBehind(files: Files, path: string): Promise<number> {
  try {
    return (await files.stat(path, { followsLink: true })).sizeBytes
  } catch {
    // Gone since it was listed.
    return 0
  }
}

function byKindAndName(left: ContractEntry, right: ContractEntry): number {
  if (left.isFolder !== right.isFolder) return left.isFolder ? -1 : 1
  return left.key < right.key ? -1 : left.key > right.key ? 1 : 0
}

/** `GET /api/file`: texts only. */
async function read(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { url, request, requestId } = call
  const path = pathOf(url)
  if (path === undefined) return respondFlaws([missing(['query', 'path'])])
  const words = {
    ...notFound(path),
    is_a_folder: `Path is a directory: ${shown(path)}`,
    file_too_large: `File is too large to show: ${shown(path)} (more than ${MAX_TEXT_BYTES} bytes)`,
  }
  const holding = { texts: workspace.texts, signal: request.signal }
  const held = await inWords(path, words, () => readText(workspace.files, orRoot(path), holding))
  if (held !== undefined) return respondText(held, path, request.signal)
  const error = new SandwireError('bad_request', `File is not text: ${shown(path)}`)
  return respondDetail(error, requestId, STATUS_NOT_TEXT)
}

/** The JSON of a body; undefined when there is none, or what is wrong with it. */
async function readContractJson(
  request: Request,
): Promise<{ readonly body: unknown } | { readonly flaws: readonly Flaw[] }> {
  if (request.body === null) return { body: undefined }
  try {
    return { body: await readJson(request, MAX_BODY_BYTES) }
  } catch (caught) {
    if (!(caught instanceof SandwireError && caught.code === 'bad_request')) throw caught
    const ctx = { error: 'Expecting value' }
    return { flaws: [{ type: 'json_invalid', loc: ['body', 0], msg: 'JSON decode error', input: {}, ctx }] }
  }
}

async function readBodyTexts<const Name extends string>(
  request: Request,
  names: readonly Name[],
): Promise<ReturnType<typeof readTexts<Name>>> {
  const read = await readContractJson(request)
  return 'flaws' in read ? read : readTexts(read.body, names)
}

/** `PUT /api/file`: makes the folders that are missing. */
async function write(call: WorkspaceCall, deps: Dependencies): Promise<Response> {
  const { request } = call
  const length = Number(request.headers.get('content-length') ?? MAX_BODY_BYTES)
  const giveBack = await holdText(length, { texts: deps.workspace.texts, signal: request.signal })
  try {
    return await writeHeld(call, deps)
  } finally {
    giveBack()
  }
}

async function writeHeld(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { url, request, requestId } = call
  const path = pathOf(url)
  const body = await readBodyTexts(request, ['content'])
  if (path === undefined || 'flaws' in body)
    return respondFlaws([
      ...(path === undefined ? [missing(['query', 'path'])] : []),
      ...('flaws' in body ? body.flaws : []),
    ])
  const { content } = body.texts
  if (!content.isWellFormed()) return respondFlaws([notUnicode(content)])
  const bytes = Buffer.from(content)
  if (bytes.byteLength > MAX_TEXT_BYTES)
    throw new SandwireError('file_too_large', `Write failed: more than ${MAX_TEXT_BYTES} bytes`)
  const condition = readCondition(request.headers)
  try {
    await inWords(path, {}, () =>
      store(workspace.files, orRoot(path), { ...condition, makesParents: true, followsLink: true }, [bytes]),
    )
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.code === 'path_refused' || error.code === 'file_changed') throw error
    const failed = new SandwireError(error.code, `Write failed: ${error.message}`)
    return respondDetail(failed, requestId, STATUS_WRITE_FAILED)
  }
  return respondJson({ success: true, path })
}

function notUnicode(content: string): Flaw {
  const msg = 'Input should be a valid string, unable to parse raw data as a unicode string'
  return {
    type: 'string_unicode',
    loc: ['body', 'content'],
    msg,
    input: content.toWellFormed().slice(0, 100),
  }
}

/** `DELETE /api/file`: a folder goes with all that is in it. */
async function remove({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const path = pathOf(url)
  if (path === undefined) return respondFlaws([missing(['query', 'path'])])
  const words = notFound(path)
  const removal = { ...readCondition(request.headers), recursive: true }
  await inWords(path, words, () => workspace.files.remove(orRoot(path), removal, request.signal))
  return respondJson({ success: true, path })
}

function notFound(path: string): Partial<Record<ErrorCode, string>> {
  return { file_not_found: `File not found: ${shown(path)}` }
}

/** `POST /api/file/rename` */
async function rename({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const body = await readBodyTexts(request, ['old_path', 'new_path'])
  if ('flaws' in body) return respondFlaws(body.flaws)
  const { old_path, new_path } = body.texts
  const words = { ...notFound(old_path), file_exists: `Target exists: ${shown(new_path)}` }
  const { files } = workspace
  // By itself first: of two paths a refusal does not say which one it is about.
  await inWords(old_path, words, () => files.stat(orRoot(old_path)))
  await inWords(new_path, words, () =>
    files.rename(orRoot(old_path), orRoot(new_path), { replaces: false }, request.signal),
  )
  return respondJson({ success: true, old_path, new_path })
}

/** `POST /api/file/move`: into a folder, under its own name. */
async function move({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const body = await readBodyTexts(request, ['src_path', 'dest_dir'])
  if ('flaws' in body) return respondFlaws(body.flaws)
  const { src_path, dest_dir } = body.texts
  const { files } = workspace
  await inWords(src_path, notFound(src_path), () => files.stat(orRoot(src_path)))
  await checkDestination(files, dest_dir)
  const name = src_path.split('/').findLast((each) => each !== '' && each !== '.') ?? '.'
  const dest_path = pathIn(dest_dir, name)
  const words = { ...notFound(src_path), file_exists: `Target exists in destination: ${shown(dest_dir)}` }
  await inWords(src_path, words, () =>
    files.rename(orRoot(src_path), dest_path, { replaces: false }, request.signal),
  )
  return respondJson({ success: true, old_path: src_path, dest_path })
}

async function checkDestination(files: Files, path: string): Promise<void> {
  const not = `Destination is not a directory: ${shown(path)}`
  const { kind } = await inWords(path, {}, () =>
    files.stat(orRoot(path), { followsLink: true }).catch((caught: unknown) => {
      const error = SandwireError.from(caught)
      if (error.code !== 'file_not_found' && error.code !== 'not_a_folder') throw error
      throw new SandwireError('not_a_folder', not)
    }),
  )
  if (kind !== 'folder') throw new SandwireError('not_a_folder', not)
}
