import { COMPAT_CLOSE_CODES } from '@sandwire/internal-api'
import { ERRORS } from '@sandwire/protocol'
import { z } from 'zod'
import type { Metrics } from '../metrics.ts'

/** Sandboxes whose reports are remembered; the least recently polled is forgotten. */
const MAX_SANDBOXES = 10_000
/** Sandboxes run untrusted code, so what one reports at once is bounded. */
const MAX_CODES = 100
const MAX_INCREASE = 1_000_000
const MAX_BYTES = 2 ** 40
/** A sandbox that has not been polled for this many polls is stopped. */
const CURRENT_POLLS = 3

/** Codes of RFC 6455 and our own; clients may send others. */
const KNOWN_CODES: ReadonlySet<string> = new Set(
  [
    ...Array.from({ length: 16 }, (_, index) => 1000 + index),
    ...Object.values(ERRORS).map(({ close }) => close),
    ...COMPAT_CLOSE_CODES,
  ].map(String),
)

/** Totals of sandboxd: the metric, and the largest increase between two polls that is counted. */
const TOTALS = {
  sessionsCreated: ['sandwire_sandboxd_sessions_created_total', MAX_INCREASE],
  processesEnded: ['sandwire_sandboxd_processes_ended_total', MAX_INCREASE],
  refused: ['sandwire_sandboxd_refused_total', MAX_INCREASE],
  outputBytes: ['sandwire_sandboxd_output_bytes_total', MAX_BYTES],
  inputBytes: ['sandwire_sandboxd_input_bytes_total', MAX_BYTES],
} as const
type Total = keyof typeof TOTALS

/** Current values of sandboxd: the metric with the sum over running sandboxes, and the largest value of one. */
const VALUES = {
  sessions: ['sandwire_sandboxd_sessions', MAX_INCREASE],
  attachments: ['sandwire_sandboxd_attachments', MAX_INCREASE],
  pausedSessions: ['sandwire_sandboxd_sessions_paused', MAX_INCREASE],
  openDescriptors: ['sandwire_sandboxd_open_descriptors', MAX_INCREASE],
  logBytes: ['sandwire_sandboxd_log_bytes', MAX_BYTES],
  residentBytes: ['sandwire_sandboxd_resident_memory_bytes', MAX_BYTES],
} as const
type Value = keyof typeof VALUES

const TOTAL_NAMES = Object.keys(TOTALS) as readonly Total[]
const VALUE_NAMES = Object.keys(VALUES) as readonly Value[]
const numbers = z.record(z.string(), z.int().min(0))
type Numbers = z.infer<typeof numbers>
const reported = z.object({
  disconnects: numbers,
  /** Absent in reports of an older sandboxd. */
  totals: numbers.default({}).transform((all) => pick(TOTAL_NAMES, all)),
  values: numbers.default({}).transform((all) => pick(VALUE_NAMES, all)),
})

/** The known numbers: what a sandbox adds is not stored. */
function pick(names: readonly string[], all: Numbers): Numbers {
  return Object.fromEntries(names.map((name) => [name, all[name] ?? 0]))
}
type Report = z.infer<typeof reported>

/** A start of a sandbox. */
export interface SandboxRun {
  readonly epoch: string
  readonly startedMs: number
}

/**
 * Metrics of all sandboxds, from what each reports to a poll: control passes connections through and sees neither their bytes nor
 * their end. Totals are counted by their increase. Lives as long as the metrics, which is longer than an object.
 */
export class SandboxdMetrics {
  readonly #metrics: Pick<Metrics, 'count' | 'set'>
  readonly #nowMs: () => number
  readonly #pollMs: number
  /** Totals were counted by another instance before this. */
  readonly #sinceMs: number
  readonly #last = new Map<
    string,
    { readonly epoch: string; readonly report: Report; readonly atMs: number }
  >()

  constructor(metrics: Pick<Metrics, 'count' | 'set'>, clock: { nowMs: () => number; pollMs: number }) {
    this.#metrics = metrics
    this.#nowMs = clock.nowMs
    this.#pollMs = clock.pollMs
    this.#sinceMs = clock.nowMs()
  }

  /** Takes an `/activity` response; ignores a malformed one. */
  receive(sandbox: string, { epoch, startedMs }: SandboxRun, response: unknown): void {
    const parsed = reported.safeParse(response)
    if (!parsed.success) return
    const disconnects = Object.fromEntries(Object.entries(parsed.data.disconnects).slice(0, MAX_CODES))
    const report = { ...parsed.data, disconnects }
    const last = this.#last.get(sandbox)
    this.#last.delete(sandbox)
    this.#last.set(sandbox, { epoch, report, atMs: this.#nowMs() })
    const [oldest] = this.#last.keys()
    if (this.#last.size > MAX_SANDBOXES && oldest !== undefined) this.#last.delete(oldest)
    const before = last?.epoch === epoch ? last.report : startedMs < this.#sinceMs ? report : undefined
    for (const [code, total] of Object.entries(disconnects))
      this.#count(
        ['sandwire_websocket_disconnects_total', MAX_INCREASE],
        total - (before?.disconnects[code] ?? 0),
        { code: KNOWN_CODES.has(code) ? code : 'other' },
      )
    for (const name of TOTAL_NAMES)
      this.#count(TOTALS[name], (report.totals[name] ?? 0) - (before?.totals[name] ?? 0))
  }

  /** Sets the metrics of current values, before they are rendered. */
  collect(): void {
    const sinceMs = this.#nowMs() - CURRENT_POLLS * this.#pollMs
    const current = [...this.#last.values()].filter(({ atMs }) => atMs >= sinceMs)
    this.#metrics.set('sandwire_sandboxd_polled', current.length)
    for (const name of VALUE_NAMES) {
      const [metric, max] = VALUES[name]
      const sum = current.reduce((all, { report }) => all + Math.min(report.values[name] ?? 0, max), 0)
      this.#metrics.set(metric, sum)
    }
  }

  #count(
    [metric, max]: readonly [string, number],
    increase: number,
    labels: Readonly<Record<string, string>> = {},
  ): void {
    if (increase > 0) this.#metrics.count(metric, labels, Math.min(increase, max))
  }
}
