import { concatBytes } from '@sandwire/bytes'
import { encodePath } from '@sandwire/protocol'
import { ApiError, request, requestJson } from './request.ts'

export interface FileEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'special'
  readonly size: number
  readonly mtimeMs: number
  readonly etag: string
  /** What a symbolic link inside the workspace points to. */
  readonly target?: 'file' | 'folder'
}

export interface FolderListing {
  readonly entries: readonly FileEntry[]
  readonly truncated: boolean
}

type Parameter = string | number | boolean | readonly string[] | undefined

/** URL of a workspace route. Paths may hold any bytes, so they are percent-encoded bytewise. */
export function workspaceUrl(
  sandbox: string,
  tail: string,
  parameters: Readonly<Record<string, Parameter>> = {},
): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => {
    const values = Array.isArray(value)
      ? (value as readonly string[])
      : [value as Exclude<Parameter, readonly string[]>]
    return values.flatMap((one) => {
      if (one === undefined || one === false) return []
      const text = one === true ? '1' : String(one)
      const encoded = encodePath(text)
      if (encoded === undefined) throw new ApiError('path_refused', 'This name cannot be used', 400)
      return [`${name}=${encoded}`]
    })
  })
  const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`
  return `/api/workspaces/${encodeURIComponent(sandbox)}/${tail}${query}`
}

export function listFolder(sandbox: string, path: string): Promise<FolderListing> {
  return requestJson<FolderListing>(workspaceUrl(sandbox, 'tree', { path }))
}

export async function makeFolder(sandbox: string, path: string): Promise<void> {
  await request(workspaceUrl(sandbox, 'mkdir'), { method: 'POST', json: { path } })
}

export async function renameFile(sandbox: string, from: string, to: string): Promise<void> {
  await request(workspaceUrl(sandbox, 'rename'), { method: 'POST', json: { from, to } })
}

export async function removeFile(sandbox: string, path: string): Promise<void> {
  await request(workspaceUrl(sandbox, 'file', { path, recursive: true }), { method: 'DELETE' })
}

/** A file's contents at one version. */
export interface FileVersion {
  readonly bytes: Uint8Array
  /** As JSON responses have it, without quotes. */
  readonly etag: string
}

/** The version in an `etag` header. A weak etag, as a compressing proxy makes it, names the same version. */
function etagOf({ headers }: Response): string {
  const header = headers.get('etag') ?? ''
  return /^(?:W\/)?"(.*)"$/.exec(header)?.[1] ?? header
}

/** A file whose bytes were not read, because it is too large. */
export interface OutgrownFile {
  readonly sizeBytes: number
  readonly etag: string
}

/** Reads a file as long as `canOpen` accepts its size; stops reading when it does not. */
export async function readFile(
  sandbox: string,
  path: string,
  canOpen: (sizeBytes: number) => boolean,
): Promise<FileVersion | OutgrownFile> {
  const response = await request(workspaceUrl(sandbox, 'file', { path }))
  const etag = etagOf(response)
  const chunks: Uint8Array<ArrayBuffer>[] = []
  // A proxy that compresses removes the content-length; then the received bytes count.
  let sizeBytes = Number(response.headers.get('content-length') ?? 0)
  let receivedBytes = 0
  const reader = response.body?.getReader()
  while (canOpen(sizeBytes)) {
    const part = await reader?.read()
    if (part === undefined || part.done) return { bytes: concatBytes(chunks), etag }
    chunks.push(part.value)
    receivedBytes += part.value.byteLength
    sizeBytes = Math.max(sizeBytes, receivedBytes)
  }
  await reader?.cancel()
  return { sizeBytes, etag }
}

export async function statFile(
  sandbox: string,
  path: string,
): Promise<Pick<FileEntry, 'kind' | 'size' | 'etag' | 'target'>> {
  return requestJson(workspaceUrl(sandbox, 'stat', { path }))
}

/** Precondition of a write. */
type WriteCondition = { readonly etag: string } | 'new' | 'any'

/** Writes a whole file and returns its new version; throws `file_changed` if the precondition fails. */
export async function writeFile(
  sandbox: string,
  path: string,
  body: string | Blob,
  condition: WriteCondition,
  transfer: { readonly onSent?: (bytes: number) => void; readonly signal?: AbortSignal } = {},
): Promise<string> {
  const headers: Record<string, string> =
    condition === 'any'
      ? {}
      : condition === 'new'
        ? { 'if-none-match': '*' }
        : { 'if-match': `"${condition.etag}"` }
  const answer = await requestJson<{ etag: string }>(workspaceUrl(sandbox, 'file', { path, parents: true }), {
    method: 'PUT',
    body,
    headers: { ...headers, 'content-type': 'application/octet-stream' },
    ...transfer,
  })
  return answer.etag
}

/** Events of a workspace watch. */
export type WatchEvent =
  | { readonly kind: 'ready' }
  | { readonly kind: 'change'; readonly paths: readonly string[] }
  /** Something changed, but events were dropped. */
  | { readonly kind: 'overflow' }
  | { readonly kind: 'lost' }

function pathsOf(data: string): readonly string[] {
  const parsed = JSON.parse(data) as { paths?: readonly { path: string }[] }
  return (parsed.paths ?? []).map(({ path }) => path)
}

/** Watches a workspace until the returned function is called. The browser reconnects by itself. */
export function watchFiles(sandbox: string, onEvent: (event: WatchEvent) => void): () => void {
  const source = new EventSource(workspaceUrl(sandbox, 'watch', { path: '.', recursive: true }))
  source.addEventListener('ready', () => onEvent({ kind: 'ready' }))
  source.addEventListener('change', (event: MessageEvent<string>) =>
    onEvent({ kind: 'change', paths: pathsOf(event.data) }),
  )
  source.addEventListener('overflow', () => onEvent({ kind: 'overflow' }))
  source.addEventListener('error', () => onEvent({ kind: 'lost' }))
  return () => source.close()
}
