import type { RestoreTarget } from '../api/conversations.ts'
import type { RequestAnswer } from '../api/runs.ts'

/** What a transcript does at the server. */
export interface AgentChannel {
  /** Answers a request of the agent. */
  readonly answer: (requestId: string, answer: RequestAnswer) => Promise<void>
  /** A tool can be allowed for all further calls. */
  readonly canAllowAlways: boolean
  /** Asks whether to restore the files, and does it. */
  readonly restore?: (target: RestoreTarget) => void
}
