import { request, requestJson } from './request.ts'

export type GrantRole = 'viewer' | 'collaborator'

/** A grant on one of the user's own sandboxes. */
export interface Grant {
  readonly grant: string
  readonly session: string | null
  readonly role: GrantRole
  readonly label: string
  readonly expiresMs: number
  /** `open`: the share link has not been used yet. */
  readonly state: 'open' | 'held'
  readonly name: string | null
}

/** A grant that another account gave to the user. */
export interface HeldGrant {
  readonly grant: string
  readonly sandbox: string
  readonly sandboxName?: string
  readonly session: string | null
  readonly role: GrantRole
  readonly owner: string
  readonly expiresMs: number
}

interface GrantRequest {
  readonly sandbox?: string
  readonly session?: string
  readonly role: GrantRole
  readonly expiresSeconds: number
}

export interface CreatedGrant {
  readonly grant: string
  /** Returned once. */
  readonly link?: string
  readonly expiresMs: number
  /** Warning about what else the grant gives access to. */
  readonly notice?: string
}

export function createGrant(json: GrantRequest): Promise<CreatedGrant> {
  return requestJson<CreatedGrant>('/api/grants', { method: 'POST', json })
}

export async function listGrants(sandbox: string): Promise<readonly Grant[]> {
  const path = `/api/grants?sandbox=${encodeURIComponent(sandbox)}`
  return (await requestJson<{ grants: readonly Grant[] }>(path)).grants
}

/** `endsSessions`: also ends the terminals and commands that were started with the grant. */
export async function revokeGrant(grant: string, endsSessions: boolean): Promise<void> {
  const query = endsSessions ? '?endSessions=1' : ''
  await request(`/api/grants/${encodeURIComponent(grant)}${query}`, { method: 'DELETE' })
}

export async function listHeldGrants(): Promise<readonly HeldGrant[]> {
  return (await requestJson<{ grants: readonly HeldGrant[] }>('/api/account/grants')).grants
}

/** Gives up a grant. */
export async function leaveGrant(grant: string): Promise<void> {
  await request(`/api/account/grants/${encodeURIComponent(grant)}`, { method: 'DELETE' })
}
