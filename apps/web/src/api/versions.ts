import { encodePath } from '@sandwire/protocol'
import { ApiError, request, requestJson } from './request.ts'
import type { RestoredFiles, Sandbox, SavedState } from './sandboxes.ts'

/** A saved state of a sandbox's files. */
export interface Version {
  readonly version: number
  readonly name: string | null
  readonly kind: 'automatic' | 'checkpoint'
  readonly savedMs: number
  readonly isNewest: boolean
  /** Programs ran while it was saved. */
  readonly isFuzzy: boolean
  /** Number of files that could not be read. */
  readonly unreadable: number
  /** What it added to the store. */
  readonly addedBytes: number
}

export interface SavedEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'fifo'
  readonly sizeBytes: number | null
}

export interface SavedFolder {
  readonly entries: readonly SavedEntry[]
  readonly isComplete: boolean
}

export interface VersionChange {
  readonly path: string
  readonly change: 'added' | 'removed' | 'modified'
  readonly kind: SavedEntry['kind']
  readonly beforeBytes: number | null
  readonly afterBytes: number | null
}

export interface VersionDiff {
  readonly from: number
  readonly to: number
  readonly changes: readonly VersionChange[]
  readonly isComplete: boolean
}

function urlOf(sandbox: string, tail = ''): string {
  return `/api/sandboxes/${encodeURIComponent(sandbox)}/checkpoints${tail}`
}

export async function listVersions(sandbox: string): Promise<readonly Version[]> {
  return (await requestJson<{ versions: readonly Version[] }>(urlOf(sandbox))).versions
}

/** Saves the files now; the version is kept until it is deleted. */
export function createCheckpoint(sandbox: string, name: string): Promise<Version> {
  return requestJson<Version>(urlOf(sandbox), { method: 'POST', json: name === '' ? {} : { name } })
}

export async function deleteVersion(sandbox: string, version: number): Promise<void> {
  await request(urlOf(sandbox, `/${version}`), { method: 'DELETE' })
}

/** Replaces the files by a version and restarts the sandbox. The current files become a checkpoint first. */
export function restoreVersion(sandbox: string, version: number): Promise<Sandbox> {
  return requestJson<Sandbox>(urlOf(sandbox, `/${version}/restore`), { method: 'POST' })
}

/** Creates a sandbox with the files of a version. */
export function forkVersion(sandbox: string, version: number, name: string): Promise<Sandbox> {
  return requestJson<Sandbox>(urlOf(sandbox, `/${version}/fork`), { method: 'POST', json: { name } })
}

/** Compares a version with a later one, by default the newest. */
export function compareVersions(sandbox: string, from: number, to?: number): Promise<VersionDiff> {
  return requestJson<VersionDiff>(urlOf(sandbox, `/${from}/diff${to === undefined ? '' : `?to=${to}`}`))
}

/** URL of a saved file or folder; its path begins with `workspace` or `home`. */
export function savedUrl(sandbox: string, version: number, path: string): string {
  const names = path.split('/').filter((name) => name !== '')
  const encoded = names.map((name) => encodePath(name))
  if (encoded.includes(undefined)) throw new ApiError('path_refused', 'This name cannot be used', 400)
  return `/files/${encodeURIComponent(sandbox)}/${encoded.join('/')}?version=${version}`
}

export function listSavedFolder(sandbox: string, version: number, path: string): Promise<SavedFolder> {
  return requestJson<SavedFolder>(savedUrl(sandbox, version, path))
}

/** Events about the files of a sandbox. */
export type StatusEvent =
  | { readonly kind: 'state'; readonly state: Omit<SavedState, 'restored'> }
  | { readonly kind: 'restored'; readonly restored: RestoredFiles }
  | { readonly kind: 'restoring' }
  /** The connection was lost, or the sandbox has stopped. */
  | { readonly kind: 'ended' }

/** Listens until the returned function is called, or the stream ends. */
export function watchStatus(sandbox: string, onEvent: (event: StatusEvent) => void): () => void {
  const source = new EventSource(`/api/sandboxes/${encodeURIComponent(sandbox)}/events`)
  const on = (name: string, read: (data: string) => StatusEvent): void =>
    source.addEventListener(name, (event: MessageEvent<string>) => onEvent(read(event.data)))
  on('sync_state', (data) => ({ kind: 'state', state: JSON.parse(data) as SavedState }))
  on('restored', (data) => ({ kind: 'restored', restored: JSON.parse(data) as RestoredFiles }))
  on('restore_started', () => ({ kind: 'restoring' }))
  source.addEventListener('error', () => {
    // Not the browser's own retries: they would never end for a sandbox that is stopped.
    source.close()
    onEvent({ kind: 'ended' })
  })
  return () => source.close()
}
