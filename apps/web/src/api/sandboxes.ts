import { requestJson, request } from './request.ts'

export type Network = 'none' | 'allowlist' | 'open'

export interface Sandbox {
  readonly id: string
  readonly name: string
  readonly state: 'creating' | 'running' | 'stopping' | 'stopped' | 'failed' | 'destroying'
  readonly reason: string | null
  readonly createdMs: number
  readonly startedMs: number | null
  readonly lastActivityMs: number
  readonly sleepAfterSeconds: number | null
  readonly ephemeral: boolean
  /** Null: this server does not save files. */
  readonly saved: SavedState | null
  readonly network: { readonly policy: Network; readonly allow: readonly string[] }
  readonly isolation: 'bubblewrap' | 'container' | 'sprite' | 'none' | null
  readonly access?: 'owner' | 'collaborator' | 'viewer'
  readonly owner?: string
}

export type SyncState = 'idle' | 'pending' | 'syncing' | 'flushing' | 'retrying' | 'error'

/** Whether the files of a sandbox are saved. */
export interface SavedState {
  readonly state: SyncState
  readonly savedMs: number | null
  /** Code of the last failure, until a save succeeds. */
  readonly error: string | null
  /** What the running sandbox started with; null: it found its files. */
  readonly restored: RestoredFiles | null
}

export interface RestoredFiles {
  readonly version: number
  readonly savedMs: number
  readonly restoredMs: number
  /** `lost`: changes after the version are lost. */
  readonly reason: 'requested' | 'started' | 'lost'
}

export interface NewSandbox {
  readonly name?: string
  readonly network?: { readonly policy: Network; readonly allow?: readonly string[] }
  readonly start?: boolean
}

export async function listSandboxes(signal?: AbortSignal): Promise<readonly Sandbox[]> {
  const options = signal === undefined ? {} : { signal }
  return (await requestJson<{ sandboxes: readonly Sandbox[] }>('/api/sandboxes', options)).sandboxes
}

export function createSandbox(json: NewSandbox): Promise<Sandbox> {
  return requestJson<Sandbox>('/api/sandboxes', { method: 'POST', json })
}

export function startSandbox(sandbox: string): Promise<Sandbox> {
  return requestJson<Sandbox>(`/api/sandboxes/${encodeURIComponent(sandbox)}/start`, { method: 'POST' })
}

/** `discards`: stop even if the files are lost. */
export function stopSandbox(sandbox: string, discards: boolean): Promise<Sandbox> {
  const query = discards ? '?discard=1' : ''
  return requestJson<Sandbox>(`/api/sandboxes/${encodeURIComponent(sandbox)}/stop${query}`, {
    method: 'POST',
  })
}

export async function destroySandbox(sandbox: string): Promise<void> {
  await request(`/api/sandboxes/${encodeURIComponent(sandbox)}`, { method: 'DELETE' })
}
