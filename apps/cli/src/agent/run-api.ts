import type { NumberedEvent } from '@sandwire/agent'
import { backOffMs, type ErrorCode, SandwireError, schema } from '@sandwire/protocol'
import type { Api } from '../server/api.ts'
import { decodeResponse, looseObject } from '../server/response.ts'

const STATES = ['queued', 'preparing', 'running', 'awaiting', 'stopping', 'collecting', 'ended'] as const
const OUTCOMES = ['completed', 'failed', 'aborted', 'timed_out', 'budget', 'crashed', 'lost'] as const
const nullableText = schema.nullable(schema.text(64 * 1024))
const anyNumber: schema.Schema<number> = {
  decode: (value) => (typeof value === 'number' ? value : undefined),
  describe: 'number',
}

const pathList = schema.list(schema.text(8192), 100_000)

const runSchema = looseObject({
  id: schema.text(128),
  sandbox: schema.text(64),
  state: schema.oneOf(STATES),
  outcome: schema.nullable(schema.oneOf(OUTCOMES)),
  message: nullableText,
  task: schema.text(512 * 1024),
  keep: schema.bool,
  createdMs: anyNumber,
  usage: looseObject({ costUsd: anyNumber }),
  approvals: schema.list(
    looseObject({
      requestId: schema.text(128),
      kind: schema.text(32),
      prompt: schema.text(64 * 1024),
      questions: schema.optional(schema.list(looseObject({ question: schema.text(64 * 1024) }), 100)),
    }),
    1_000,
  ),
  result: schema.nullable(
    looseObject({
      summary: schema.text(1024 * 1024),
      diffBytes: schema.nullable(anyNumber),
      diffProblem: nullableText,
      tamperProof: schema.bool,
      ignored: pathList,
      submodules: pathList,
      withheld: pathList,
      unreadable: pathList,
    }),
  ),
})
const runsSchema = looseObject({ runs: schema.list(runSchema, 1_000) })

/** A run as the server shows it. */
export type Run = schema.Decoded<typeof runSchema>

export function decodeRun(value: unknown): Run {
  return decodeResponse(runSchema, value)
}

export function decodeRuns(value: unknown): readonly Run[] {
  return decodeResponse(runsSchema, value).runs
}

/** The error of a run that did not complete, which has its exit code. */
const OUTCOME_ERRORS: Readonly<Record<(typeof OUTCOMES)[number], ErrorCode | undefined>> = {
  completed: undefined,
  failed: 'run_failed',
  aborted: 'run_aborted',
  timed_out: 'run_timed_out',
  budget: 'run_over_budget',
  crashed: 'run_crashed',
  lost: 'run_lost',
}

/** The error of an ended run; undefined when it completed. */
export function errorOfRun({ outcome, message }: Run): SandwireError | undefined {
  const code = outcome === null ? undefined : OUTCOME_ERRORS[outcome]
  if (code === undefined) return undefined
  return new SandwireError(code, `The run ${outcome ?? 'ended'}${message === null ? '' : `: ${message}`}`)
}

export async function readRun(api: Api, id: string): Promise<Run> {
  return decodeRun(await api.request('GET', `/api/runs/${id}`))
}

const MAX_SHOWN_PATHS = 5

/** Why the diff does not have everything that the run changed, one line for each reason. */
export function describeMissing({ result }: Pick<Run, 'result'>): readonly string[] {
  if (result === null) return []
  const { diffProblem, withheld, unreadable, ignored, submodules } = result
  const list = (reason: string, paths: readonly string[]): string[] => {
    if (paths.length === 0) return []
    const more = paths.length > MAX_SHOWN_PATHS ? ` and ${paths.length - MAX_SHOWN_PATHS} more` : ''
    return [`${reason}: ${paths.slice(0, MAX_SHOWN_PATHS).join(', ')}${more}`]
  }
  return [
    ...(diffProblem === null ? [] : [`there is no diff: ${diffProblem}`]),
    ...list("left out, because they contain the run's token", withheld),
    ...list('left out, because a patch cannot contain them or they could not be read', unreadable),
    ...list('left out, because new ignore rules hide them', ignored),
    ...list('left out, because they are in submodules', submodules),
  ]
}

/** A run is collected within this time after its last event. */
const COLLECT_MS = 60_000
const COLLECT_POLL_MS = 200

/** The ended run; its events may be complete a moment before. */
export async function waitForResult(
  { api, wait }: { readonly api: Api; readonly wait: (ms: number) => Promise<void> },
  id: string,
): Promise<Run> {
  for (let waitedMs = 0; ; waitedMs += COLLECT_POLL_MS) {
    const run = await readRun(api, id)
    if (run.state === 'ended' || waitedMs > COLLECT_MS) return run
    await wait(COLLECT_POLL_MS)
  }
}

/** The patch of an ended run. */
export async function readDiff(api: Api, id: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const response = await api.send({ method: 'GET', path: `/api/runs/${id}/diff`, signal })
  const chunks: Uint8Array[] = []
  for await (const chunk of response.bytes()) chunks.push(chunk)
  return Uint8Array.from(Buffer.concat(chunks))
}

/** How long to try to reach the server again. */
const RETRY_FOR_MS = 10 * 60_000

/** The `data` of server-sent events, as they arrive. */
async function* parseServerSentEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<{
  readonly event: string
  readonly data: string
}> {
  const decoder = new TextDecoder()
  let buffer = ''
  for await (const chunk of bytes) {
    buffer += decoder.decode(chunk, { stream: true })
    for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
      const lines = buffer.slice(0, end).split('\n')
      buffer = buffer.slice(end + 2)
      const valueOf = (name: string): string =>
        lines
          .filter((line) => line.startsWith(`${name}: `))
          .map((line) => line.slice(name.length + 2))
          .join('\n')
      const data = valueOf('data')
      if (data !== '') yield { event: valueOf('event'), data }
    }
  }
}

/** Every event after a sequence number, each once, until the run is complete. Reconnects when the connection breaks. */
export async function* followRun(
  {
    api,
    nowMs,
    wait,
  }: {
    readonly api: Api
    readonly nowMs: () => number
    readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  },
  id: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<NumberedEvent> {
  let seq = after
  let failures = 0
  let failingSinceMs: number | undefined
  while (!signal.aborted) {
    try {
      const path = `/api/runs/${id}/events?after=${seq}`
      const headers = { accept: 'text/event-stream' }
      const response = await api.send({ method: 'GET', path, headers, signal })
      for await (const { event, data } of parseServerSentEvents(response.bytes())) {
        failures = 0
        failingSinceMs = undefined
        if (event === 'partial') continue
        const entry = JSON.parse(data) as NumberedEvent
        if (entry.seq <= seq) continue
        seq = entry.seq
        yield entry
        if (entry.event.type === 'complete') return
      }
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (signal.aborted) return
      if (!error.info.retryable) throw error
      failingSinceMs ??= nowMs()
      if (nowMs() - failingSinceMs > RETRY_FOR_MS) throw error
    }
    failures += 1
    await wait(backOffMs(Math.min(failures, 6), 0.5), signal).catch(() => undefined)
  }
}
