import { request, requestJson } from './request.ts'

export interface Session {
  readonly id: string
  readonly sandbox: string
  readonly sandboxName?: string
  readonly state: 'pending' | 'running' | 'exited' | 'gone'
  readonly mode: 'pipe' | 'pty'
  readonly cmd: string
  /** The agent's program that opened it. */
  readonly agentRun?: string
  /** Of the interface of a coding agent. */
  readonly usage?: { readonly costUsd: number }
  readonly budgetUsd?: number
  readonly attachments: number
  /** Names of the attached users; absent when the server does not report them. */
  readonly people?: readonly string[]
  readonly createdMs?: number | null
  readonly lastInputMs: number | null
  readonly lastOutputMs: number | null
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null
  readonly access?: 'owner' | 'collaborator' | 'viewer'
  readonly owner?: string
}

/** Lists the sessions of all sandboxes that the user can see. */
export async function listSessions(signal?: AbortSignal): Promise<readonly Session[]> {
  const options = signal === undefined ? {} : { signal }
  return (await requestJson<{ sessions: readonly Session[] }>('/api/account/sessions', options)).sessions
}

export async function endSession(session: string): Promise<void> {
  await request(`/api/account/sessions/${encodeURIComponent(session)}`, { method: 'DELETE' })
}
