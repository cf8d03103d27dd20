import { z } from 'zod'
import { gatewayGrantsOf } from '../credentials/grants.ts'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import { CALL_HEADER } from '../sandbox/call.ts'
import { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { RUN_URL } from './call.ts'
import { createRun, type RunOrder } from './create.ts'
import { repositorySchema, refSchema } from './repository.ts'
import { ownerCall } from './agent-sandbox.ts'
import type { RunOutcome } from './state.ts'
import type { RunView } from './view.ts'

const executeSchema = z.object({
  repo: repositorySchema,
  ref: refSchema.optional(),
  task: z.string().min(1),
  context: z.string().optional(),
  installationId: z.int().min(1).optional(),
  model: z.string().optional(),
})
const reviewSchema = executeSchema
  .omit({ task: true })
  .extend({ task: z.string().optional(), diff: z.string().optional() })

/** Options of `startSession`, `execute` and `research`. */
export type ExecuteOptions = z.input<typeof executeSchema>
/** Options of `review`: a diff, or a ref that is compared with its repository's default branch. */
export type ReviewOptions = z.input<typeof reviewSchema>

export interface ExecuteResult {
  readonly diff: string
  readonly summary: string
  readonly filesChanged: readonly string[]
  /** The diff is exact also when the run was cut short. */
  readonly status: RunOutcome
  readonly sessionId: string
  readonly treeHash: string | null
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

const findingsSchema = z.object({
  summary: z.string(),
  findings: z.array(
    z.object({ finding: z.string(), file: z.string().exactOptional(), line: z.int().exactOptional() }),
  ),
})
const commentsSchema = z.object({
  summary: z.string(),
  comments: z.array(z.object({ file: z.string(), line: z.int(), comment: z.string() })),
})

/** Methods for other Workers that bind the class. Runs belong to the account that the settings name. */
export interface BindingMethods {
  startSession(options: ExecuteOptions): Promise<string>
  execute(options: ExecuteOptions): Promise<ExecuteResult>
  research(options: ExecuteOptions): Promise<ResearchResult>
  review(options: ReviewOptions): Promise<ReviewResult>
  sendFeedback(sessionId: string, message: string): Promise<void>
  abort(sessionId: string): Promise<void>
  handleWebSocket(request: Request, ownRun: string | undefined): Promise<Response>
}

/** Options of another Worker; throws with the name of a wrong one. */
function parseOptions<S extends z.ZodType>(schema: S, options: unknown): z.output<S> {
  const parsed = schema.safeParse(options)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Error(`Cannot use "${issue?.path.join('.') ?? ''}": ${issue?.message ?? 'not accepted'}`)
}

/** The last segment of a path such as `/terminal/RUN`. */
function lastSegment(url: string): string {
  return new URL(url).pathname.split('/').at(-1) ?? ''
}

/** `object` distinguishes the object that the Worker called: the same call on it returns the same run. */
export function openBindingMethods(env: Env, object: string): BindingMethods {
  const { config, ceilings, nowMs, keys } = runtimeOf(env)
  const owner = (): string => {
    const { bindingAccount } = config.runs
    if (bindingAccount === undefined)
      throw new Error('Cannot start a run: set runs.bindingAccount in the settings of the server')
    return bindingAccount
  }
  const callOf = (action: 'run.create' | 'run.steer' | 'run.abort') =>
    ownerCall({ owner: owner(), ownerName: 'Worker' }, action)
  const lookupOf = async () => new SandboxLookup(env, (await keys()).mint)

  const start = async (order: RunOrder, method: string): Promise<string> => {
    const { mint } = await keys()
    const deps = {
      lookup: new SandboxLookup(env, mint),
      mint,
      settings: config.runs,
      ceilings,
      grants: gatewayGrantsOf(env),
      nowMs,
    }
    const { id } = await createRun(deps, callOf('run.create'), order, `${object}.${method}`)
    return id
  }
  const toOrder = (
    { repo, ref, task, context, model, installationId }: z.output<typeof executeSchema>,
    purpose: NonNullable<RunOrder['purpose']>,
    interactive: boolean,
  ): RunOrder => ({
    source: {
      kind: 'repo',
      repo,
      ...(ref === undefined ? {} : { ref }),
      ...(installationId === undefined ? {} : { installationId }),
    },
    task,
    context,
    model,
    interactive,
    purpose,
  })
  const finish = async (id: string): Promise<RunView> => {
    const run = (await lookupOf()).run(id)
    for (;;) {
      const view = unwrap(await run.waitForEnd())
      if (view.state !== 'ended') continue
      const { result } = view
      if (view.outcome === 'completed') return view
      // A run that was cut short still has a diff.
      if (result === null || result.diffBytes === null)
        throw new Error(
          `The run ended (${view.outcome ?? 'unknown'}): ${view.message ?? 'no reason was given'}`,
        )
      return view
    }
  }

  return {
    startSession: (options) =>
      start(toOrder(parseOptions(executeSchema, options), 'change', true), 'startSession'),
    async execute(options) {
      const id = await start(toOrder(parseOptions(executeSchema, options), 'change', false), 'execute')
      const { result, outcome } = await finish(id)
      return {
        diff: unwrap(await (await lookupOf()).run(id).diffText()),
        summary: result?.summary ?? '',
        filesChanged: result?.filesChanged ?? [],
        status: outcome ?? 'failed',
        sessionId: id,
        treeHash: result?.treeHash ?? null,
      }
    },
    async research(options) {
      const id = await start(toOrder(parseOptions(executeSchema, options), 'research', false), 'research')
      const { result } = await finish(id)
      const structured = findingsSchema.safeParse(result?.structured)
      const findings = structured.success ? structured.data.findings : []
      return { summary: structured.data?.summary ?? result?.summary ?? '', findings, sessionId: id }
    },
    async review(options) {
      const { diff, task, ...rest } = parseOptions(reviewSchema, options)
      const subject =
        diff === undefined ? 'the changes of this branch against the default branch' : 'this diff'
      const asked = task ?? `Review ${subject}. Comment on bugs and risks, each with its file and line.`
      const context = [rest.context, diff].filter((each) => each !== undefined).join('\n\n')
      const order = toOrder({ ...rest, task: asked, context }, 'review', false)
      const id = await start(order, 'review')
      const { result } = await finish(id)
      const structured = commentsSchema.safeParse(result?.structured)
      const comments = structured.success ? structured.data.comments : []
      return { summary: structured.data?.summary ?? result?.summary ?? '', comments, sessionId: id }
    },
    async sendFeedback(sessionId, message) {
      const lookup = await lookupOf()
      await lookup.ofRun(sessionId)
      const text = { id: crypto.randomUUID(), text: message }
      unwrap(await lookup.run(sessionId).sendMessage(callOf('run.steer'), text))
    },
    async abort(sessionId) {
      const lookup = await lookupOf()
      await lookup.ofRun(sessionId)
      unwrap(await lookup.run(sessionId).abortRun(callOf('run.abort')))
    },
    async handleWebSocket(request, ownRun) {
      const id = ownRun ?? lastSegment(request.url)
      const lookup = await lookupOf()
      await lookup.ofRun(id)
      const call = { ...callOf('run.steer'), what: 'terminal', form: 'socket', after: 0, limit: 0 }
      const headers = { [CALL_HEADER]: JSON.stringify(call), upgrade: 'websocket' }
      return lookup.run(id).fetch(RUN_URL, { headers })
    },
  }
}
