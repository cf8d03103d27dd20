import type { ClaudeOptions, InputRequest, RunResult, Usage } from '@sandwire/agent'
import type { NetworkSpec } from '@sandwire/internal-api'
import type { RunState } from './state.ts'
import type { Published } from './published.ts'
import type { Turn } from './turns.ts'

/** Where the files of a run come from. */
export type RunSource =
  | {
      readonly kind: 'repo'
      /** `https://HOST/PATH`, without credentials. */
      readonly repo: string
      /** Branch, tag or commit; absent: the default branch. */
      readonly ref?: string
      /** GitHub App installation whose token the gateway uses. */
      readonly installationId?: number
    }
  /** The files of a sandbox that exists. */
  | { readonly kind: 'sandbox' }

/** Bounds of a run; absent ones are the server's defaults. */
export interface RunLimits {
  readonly wallClockSeconds: number
  /** Without any output of the agent. */
  readonly idleSeconds: number
  /** Until a pending approval is denied. */
  readonly approvalSeconds: number
  /** Requests to the model; null: any number. */
  readonly turns: number | null
  readonly budgetUsd: number
}

/** What a run was created with. */
export interface RunRequest {
  readonly source: RunSource
  readonly task: string
  readonly context?: string
  /** Name of the agent. */
  readonly agent: string
  readonly model?: string
  /** `auto`: tools run without asking. `ask`: tools that change something ask first. */
  readonly permission: 'auto' | 'ask'
  readonly limits: RunLimits
  readonly network: NetworkSpec
  /** The sandbox stays after the run. */
  readonly keep: boolean
  /** The agent takes further messages after a turn, until it is stopped or idle for too long. */
  readonly isInteractive: boolean
  /** Hosts of the operator's header rules that the run may use. */
  readonly hosts?: readonly string[]
  /** What the result is for; `research` and `review` have no diff. */
  readonly purpose: 'change' | 'research' | 'review'
  /** Set for a session of `/ws/claude-stream`: its first message comes from the client. */
  readonly stream?: StreamOptions
}

/** Options of a session of `/ws/claude-stream`. */
export interface StreamOptions extends ClaudeOptions {
  /** A model as Claude Code itself names it, such as `sonnet`. The gateway checks which model that is. */
  readonly modelAlias?: string
  /** The conversation to continue, as Claude Code names it. */
  readonly resume?: string
  /** Until it ends while a client is connected and sends nothing. */
  readonly restSeconds?: number
}

/** The stored run. */
export interface RunRecord {
  readonly id: string
  /** Account that created it and pays for it. */
  readonly owner: string
  /** Name of the account, for the audit. */
  readonly ownerName: string
  readonly sandbox: string
  readonly request: RunRequest
  readonly createdMs: number
  readonly state: RunState
  /** When its sandbox was first requested. */
  readonly preparingSinceMs: number | null
  /** When the agent was first told to stop, or its sandbox was last stopped for that. */
  readonly stoppingSinceMs: number | null
  /** When the agent must have ended, with time to collect; null until the agent is started. */
  readonly deadlineMs: number | null
  /** Random, made with the journal in the sandbox; events of another journal are of another sandbox. */
  readonly journal: string | null
  /** Session in which the repository is cloned. */
  readonly cloneSession: string | null
  /** What the sandbox last reported. */
  readonly agent: AgentFacts | null
  readonly result: RunResult | null
  /** Size of the stored diff; null: there is none. */
  readonly diffBytes: number | null
  /** True when the pack of the changes is stored. */
  readonly hasPack?: boolean
  readonly published?: Published
  /** The account knows that it has ended. */
  readonly isEndReported: boolean
  /** What the gateway counted. */
  readonly spent: Spent | null
  /** Messages with the files that are kept for them, of a run whose sandbox stays. */
  readonly turns?: readonly Turn[]
  /** Versions of the files before each restore, newest last. */
  readonly undoVersions?: readonly number[]
  /** A restore that is not done. */
  readonly restore?: RunRestore | null
}

/** A restore of the files of an ended run, by the owner of its sandbox. */
export interface RunRestore {
  readonly key: string
  readonly version: number
  readonly by: string
}

export interface AgentFacts {
  readonly startedMs: number
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly usage: Usage
  readonly approvals: readonly InputRequest[]
  readonly isTamperProof: boolean
}

/** Use of the model API by an agent's own interface. */
export interface TuiUsage {
  readonly usage: Spent
  readonly budgetUsd: number
}

/** Authoritative use of the model API. */
export interface Spent {
  readonly costUsd: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly requests: number
}
