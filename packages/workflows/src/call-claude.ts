/** Options of `do` and `research`. */
export interface DoOptions {
  /** `https://HOST/PATH`, without credentials. */
  readonly repo: string
  /** Branch, tag or commit; default: the default branch. */
  readonly ref?: string
  readonly task: string
  readonly context?: string
  readonly model?: string
  /** Installation of the server's GitHub App that may read the repository. */
  readonly installationId?: number
}
export type ResearchOptions = DoOptions

/** Options of `review`: a diff, or a ref that is compared with the repository's default branch. */
export interface ReviewOptions extends Omit<DoOptions, 'task'> {
  readonly task?: string
  readonly diff?: string
}

export interface DoResult {
  /** For `git apply --binary`. Exact also when the run was cut short. */
  readonly diff: string
  readonly summary: string
  readonly filesChanged: readonly string[]
  /** `completed`, or why the run was cut short. */
  readonly status: string
  /** Id of the run. */
  readonly sessionId: string
}

export interface ResearchResult {
  readonly summary: string
  readonly findings: readonly { readonly finding: string; readonly file?: string; readonly line?: number }[]
  readonly sessionId: string
}

export interface ReviewResult {
  readonly summary: string
  readonly comments: readonly { readonly file: string; readonly line: number; readonly comment: string }[]
  readonly sessionId: string
}

/** The methods of `ClaudeSandbox` that are called here. */
interface ClaudeStub {
  execute(options: DoOptions): Promise<DoResult>
  research(options: ResearchOptions): Promise<ResearchResult>
  review(options: ReviewOptions): Promise<ReviewResult>
}

/** The binding of the class `ClaudeSandbox`. */
export interface ClaudeBinding {
  idFromName(name: string): unknown
  // The id's type differs between versions of the platform's types.
  get(id: never): unknown
}

/** What a call is about, and the object that makes it. A name that is used again returns the run of the first call. */
export interface CallOptions {
  readonly name?: string
}

/**
 * Has an agent work, and returns its result: `do` changes files, `research` answers a question, `review` comments on a change.
 * In a step of a workflow, give a name that is the same when the step is repeated, such as the id of the workflow's instance.
 */
export async function callClaude(
  binding: ClaudeBinding,
  action: string,
  args: readonly unknown[],
  { name = `claude-${crypto.randomUUID()}` }: CallOptions = {},
): Promise<unknown> {
  const sandbox = binding.get(binding.idFromName(name) as never) as ClaudeStub
  const [options] = args
  switch (action) {
    case 'do':
      return sandbox.execute(options as DoOptions)
    case 'research':
      return sandbox.research(options as ResearchOptions)
    case 'review':
      return sandbox.review(options as ReviewOptions)
    default:
      throw new Error(`Unknown Claude action: ${action}`)
  }
}
