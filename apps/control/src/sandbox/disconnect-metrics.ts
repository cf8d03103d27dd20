import { COMPAT_CLOSE_CODES } from '@sandwire/internal-api'
import { ERRORS } from '@sandwire/protocol'
import { z } from 'zod'
import type { Metrics } from '../metrics.ts'

/** Sandboxes whose counts are remembered; the least recently polled is forgotten. */
const MAX_SANDBOXES = 10_000
/** Sandboxes run untrusted code, so what one reports at once is bounded. */
const MAX_CODES = 100
const MAX_INCREASE = 1_000_000

/** Codes of RFC 6455 and our own; clients may send others. */
const KNOWN_CODES: ReadonlySet<string> = new Set(
  [
    ...Array.from({ length: 16 }, (_, index) => 1000 + index),
    ...Object.values(ERRORS).map(({ close }) => close),
    ...COMPAT_CLOSE_CODES,
  ].map(String),
)

const reported = z.object({ disconnects: z.record(z.string(), z.int().min(0)) })

/** A start of a sandbox. */
export interface SandboxRun {
  readonly epoch: string
  readonly startedMs: number
}

/**
 * Counts closed WebSockets. Control passes connections through and does not see them end, so it counts the increase of the totals
 * that sandboxd reports to each poll. Lives as long as the metrics, which is longer than an object.
 */
export class DisconnectMetrics {
  readonly #metrics: Pick<Metrics, 'count'>
  /** Totals were counted by another instance before this. */
  readonly #sinceMs: number
  readonly #last = new Map<
    string,
    { readonly epoch: string; readonly totals: Readonly<Record<string, number>> }
  >()

  constructor(metrics: Pick<Metrics, 'count'>, sinceMs: number) {
    this.#metrics = metrics
    this.#sinceMs = sinceMs
  }

  /** Takes an `/activity` response; ignores a malformed one. */
  receive(sandbox: string, { epoch, startedMs }: SandboxRun, response: unknown): void {
    const parsed = reported.safeParse(response)
    if (!parsed.success) return
    const totals = Object.fromEntries(Object.entries(parsed.data.disconnects).slice(0, MAX_CODES))
    const last = this.#last.get(sandbox)
    this.#last.delete(sandbox)
    this.#last.set(sandbox, { epoch, totals })
    const [oldest] = this.#last.keys()
    if (this.#last.size > MAX_SANDBOXES && oldest !== undefined) this.#last.delete(oldest)
    const before = last?.epoch === epoch ? last.totals : startedMs < this.#sinceMs ? totals : {}
    for (const [code, total] of Object.entries(totals)) {
      const increase = Math.min(total - (before[code] ?? 0), MAX_INCREASE)
      if (increase > 0)
        this.#metrics.count(
          'sandwire_websocket_disconnects_total',
          { code: KNOWN_CODES.has(code) ? code : 'other' },
          increase,
        )
    }
  }
}
