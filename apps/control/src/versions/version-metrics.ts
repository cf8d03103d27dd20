import type { Metrics } from '../metrics.ts'

/** Sandboxes whose state is remembered; the one that changed longest ago is forgotten. */
const MAX_SANDBOXES = 10_000

interface SandboxFacts {
  /** Bytes in the store. */
  readonly storedBytes: number
  /** Since when files are not saved; undefined: everything is saved. */
  readonly unsavedMs: number | undefined
}

/** Metrics of saving, over the sandboxes of this isolate. Lives longer than an object. */
export class VersionMetrics {
  readonly #metrics: Pick<Metrics, 'count' | 'set'>
  readonly #nowMs: () => number
  readonly #sandboxes = new Map<string, SandboxFacts>()

  constructor(metrics: Pick<Metrics, 'count' | 'set'>, nowMs: () => number) {
    this.#metrics = metrics
    this.#nowMs = nowMs
  }

  /** `savedBytes` is what this save added to the store. */
  saved(savedBytes: number): void {
    this.#metrics.count('sandwire_saves_total', { outcome: 'ok' })
    this.#metrics.count('sandwire_saved_bytes_total', {}, savedBytes)
  }

  failed(code: string): void {
    this.#metrics.count('sandwire_saves_total', { outcome: 'error' })
    this.#metrics.count('sandwire_save_failures_total', { code })
  }

  restored(isOk: boolean): void {
    this.#metrics.count('sandwire_restores_total', { outcome: isOk ? 'ok' : 'error' })
  }

  /** Undefined: the sandbox does not run, or was destroyed. */
  update(sandbox: string, facts: SandboxFacts | undefined): void {
    this.#sandboxes.delete(sandbox)
    if (facts === undefined) return
    this.#sandboxes.set(sandbox, facts)
    const [oldest] = this.#sandboxes.keys()
    if (this.#sandboxes.size > MAX_SANDBOXES && oldest !== undefined) this.#sandboxes.delete(oldest)
  }

  /** Sets the metrics of current values, before they are rendered. */
  collect(): void {
    const all = [...this.#sandboxes.values()]
    const unsaved = all.flatMap(({ unsavedMs }) => (unsavedMs === undefined ? [] : [unsavedMs]))
    const oldestMs = Math.min(this.#nowMs(), ...unsaved)
    this.#metrics.set('sandwire_unsaved_sandboxes', unsaved.length)
    this.#metrics.set('sandwire_version_age_seconds', (this.#nowMs() - oldestMs) / 1000)
    this.#metrics.set(
      'sandwire_version_bytes',
      all.reduce((sum, { storedBytes }) => sum + storedBytes, 0),
    )
  }
}
