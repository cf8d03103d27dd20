import { type ErrorCode, isErrorCode } from '@sandwire/protocol'
import { z } from 'zod'
import { isRefusal } from '../audit/entry.ts'
import { toSandwireError } from '../disk-full.ts'
import type { Log } from '../log.ts'
import type { SandboxStore } from './store.ts'

/** As many as sandboxd remembers. */
const MAX_REFUSALS = 256

/** A request that sandboxd refused after its 101 response, which control does not see. */
export interface LateRefusal {
  readonly requestId: string
  readonly code: ErrorCode
}

/** Errors of processes that failed to start. */
const START_FAILURES: readonly ErrorCode[] = ['command_not_found', 'command_not_executable', 'spawn_failed']

const refusal = z.object({ requestId: z.string().max(128), code: z.string().refine(isErrorCode) })
const activity = z.object({ refused: z.array(z.unknown()).max(MAX_REFUSALS) })

/** The refusals in an `/activity` response that the audit records. A sandbox names request ids only; control knows who made them. */
export function decodeLateRefusals(value: unknown): readonly LateRefusal[] {
  const known = activity.safeParse(value)
  if (!known.success) return []
  return known.data.refused
    .map((each) => refusal.safeParse(each))
    .flatMap(({ data }) => (data === undefined ? [] : [data]))
    .filter(({ code }) => isRefusal(code) || START_FAILURES.includes(code))
}

export interface LateRefusalsDependencies {
  readonly store: SandboxStore
  /** Reports refusals to the owner's audit, after the rows of the requests themselves. */
  readonly report: (owner: string, sandbox: string, refusals: readonly LateRefusal[]) => Promise<void>
  readonly log: Pick<Log, 'warn'>
}

/** Reports late refusals to the owner's audit. sandboxd repeats them with every poll, so nothing is stored here. */
export class LateRefusals {
  readonly #deps: LateRefusalsDependencies
  /** Reported requests that sandboxd still repeats. */
  #reported: ReadonlySet<string> = new Set()

  constructor(deps: LateRefusalsDependencies) {
    this.#deps = deps
  }

  /** Handles an `/activity` response. What cannot be reported now is repeated by the next poll. */
  async receive(activityResponse: unknown): Promise<void> {
    const { store, report, log } = this.#deps
    const record = store.read()
    const refusals = decodeLateRefusals(activityResponse)
    const fresh = refusals.filter(({ requestId }) => !this.#reported.has(requestId))
    if (record === undefined || fresh.length === 0) return
    try {
      await report(record.owner, record.id, fresh)
      this.#reported = new Set(refusals.map(({ requestId }) => requestId))
    } catch (caught) {
      const { code, message } = toSandwireError(caught)
      log.warn('audit_delayed', { code, cause: message })
    }
  }
}
