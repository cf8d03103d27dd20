import { request, requestJson } from './request.ts'

export interface Session {
  readonly id: string
  readonly sandbox: string
  readonly sandboxName?: string
  readonly state: 'pending' | 'running' | 'exited' | 'gone'
  readonly mode: 'pipe' | 'pty'
  readonly cmd: string
  readonly attachments: number
  /** Names of those who are there; absent where the server does not tell. */
  readonly people?: readonly string[]
  readonly createdMs?: number | null
  readonly lastInputMs: number | null
  readonly lastOutputMs: number | null
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null
  readonly access?: 'owner' | 'collaborator' | 'viewer'
  readonly owner?: string
}

/** Sessions of every sandbox that the person can see. */
export async function listSessions(signal?: AbortSignal): Promise<readonly Session[]> {
  const wish = signal === undefined ? {} : { signal }
  return (await requestJson<{ sessions: readonly Session[] }>('/api/account/sessions', wish)).sessions
}

export async function endSession(session: string): Promise<void> {
  await request(`/api/account/sessions/${encodeURIComponent(session)}`, { method: 'DELETE' })
}
