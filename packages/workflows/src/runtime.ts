import {
  callClaude,
  type CallOptions,
  type ClaudeBinding,
  type DoOptions,
  type DoResult,
  type ResearchOptions,
  type ResearchResult,
  type ReviewOptions,
  type ReviewResult,
} from './call-claude.ts'

/** Fields that a runtime adds to every call. */
export type RuntimeDefaults = Partial<Pick<DoOptions, 'repo' | 'ref' | 'model' | 'installationId'>>

type WithDefaults<T> = Omit<T, keyof RuntimeDefaults> & Partial<T>

/** Agents for the steps of a workflow. */
export interface Runtime {
  readonly claude: {
    /** Changes files; returns the diff. */
    do(options: WithDefaults<DoOptions>, call?: CallOptions): Promise<DoResult>
    /** Answers a question about a repository. */
    research(options: WithDefaults<ResearchOptions>, call?: CallOptions): Promise<ResearchResult>
    /** Comments on a diff or a ref. */
    review(options: WithDefaults<ReviewOptions>, call?: CallOptions): Promise<ReviewResult>
  }
}

/** Opens the agents of a binding. `defaults` are used where a call does not say otherwise. */
export function createRuntime(binding: ClaudeBinding, defaults: RuntimeDefaults = {}): Runtime {
  const call =
    <R>(action: string) =>
    (options: object, callOptions?: CallOptions): Promise<R> =>
      callClaude(binding, action, [{ ...defaults, ...options }], callOptions) as Promise<R>
  return {
    claude: {
      do: call<DoResult>('do'),
      research: call<ResearchResult>('research'),
      review: call<ReviewResult>('review'),
    },
  }
}
