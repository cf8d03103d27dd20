import { respondJson } from '../../http/respond.ts'
import { describeFile, orChanged, readCondition, readFile, viewStat, writeFile } from './file-content.ts'
import { respondListing } from './listing-response.ts'
import { JsonFields, Query } from './parameters.ts'
import type { Workspace, WorkspaceCall } from './route.ts'

interface Dependencies {
  readonly workspace: Workspace
}

/** Entries per response. */
const MAX_ENTRIES = 10_000
const LIST_MS = 5_000

export const FILE_HANDLERS = {
  'GET /workspace/tree': listFolder,
  'GET /workspace/stat': showStat,
  'GET /workspace/file': readFile,
  'HEAD /workspace/file': describeFile,
  'PUT /workspace/file': writeFile,
  'DELETE /workspace/file': removeFile,
  'POST /workspace/mkdir': makeFolder,
  'POST /workspace/rename': renameFile,
  'POST /workspace/copy': copyFile,
}

/** `GET /workspace/tree`: lists one folder. */
async function listFolder({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const query = new Query(url)
  const path = query.text('path', '.')
  const after = query.optional('after')
  const maxEntries = query.integer('limit', { min: 1, max: MAX_ENTRIES }) ?? MAX_ENTRIES
  const list = async (): Promise<object> => {
    const bounds = { maxEntries, timeMs: LIST_MS, ...(after === undefined ? {} : { after }) }
    const { entries, truncated } = await workspace.files.list(path, bounds)
    const shown = entries.map((entry) => ({ name: entry.name, ...viewStat(entry) }))
    return { path, entries: shown, truncated }
  }
  return respondListing(list, { memory: workspace.texts, signal: request.signal })
}

/** `GET /workspace/stat`: of a link itself, with the kind of its target. */
async function showStat({ url }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const path = new Query(url).text('path')
  return respondJson({ path, ...viewStat(await workspace.files.stat(path)) })
}

/** `DELETE /workspace/file` */
async function removeFile(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { request, url } = call
  const query = new Query(url)
  const path = query.text('path')
  const options = { ...readCondition(request.headers), recursive: query.flag('recursive') }
  const run = async (): Promise<Response> => {
    await workspace.files.remove(path, options, request.signal)
    return respondJson({ path })
  }
  return orChanged(call, workspace.files, { path, run })
}

/** `POST /workspace/mkdir` */
async function makeFolder({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const fields = await JsonFields.read(request, ['path', 'parents'])
  const path = fields.text('path')
  await workspace.files.makeFolder(path, { makesParents: fields.flag('parents') })
  return respondJson({ path })
}

/** `POST /workspace/rename` */
async function renameFile(call: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const { request } = call
  const fields = await JsonFields.read(request, ['from', 'to', 'replace'])
  const [from, to] = [fields.text('from'), fields.text('to')]
  const options = { ...readCondition(request.headers), replaces: fields.flag('replace') }
  const run = async (): Promise<Response> => {
    await workspace.files.rename(from, to, options, request.signal)
    return respondJson({ from, to })
  }
  return orChanged(call, workspace.files, { path: from, run })
}

/** `POST /workspace/copy`: `left` counts special files that were not copied. */
async function copyFile({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const fields = await JsonFields.read(request, ['from', 'to', 'replace'])
  const [from, to] = [fields.text('from'), fields.text('to')]
  const { left } = await workspace.files.copy(from, to, { replaces: fields.flag('replace') }, request.signal)
  return respondJson({ from, to, left })
}
