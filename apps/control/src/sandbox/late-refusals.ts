import { type ErrorCode, isErrorCode } from '@sandwire/protocol'
import { z } from 'zod'
import { isRefusal } from '../audit/entry.ts'
import { nameFault } from '../disk-full.ts'
import type { Log } from '../log.ts'
import type { SandboxStore } from './store.ts'

/** As many as sandboxd remembers. */
const MAX_TOLD = 256

/** What came of an attach behind its 101, which control has not seen. */
export interface LateRefusal {
  readonly requestId: string
  readonly code: ErrorCode
}

/** Why a process that was let did not start. */
const START_FAILURES: readonly ErrorCode[] = ['command_not_found', 'command_not_executable', 'spawn_failed']

const told = z.object({ requestId: z.string().max(128), code: z.string().refine(isErrorCode) })
const activity = z.object({ refused: z.array(z.unknown()).max(MAX_TOLD) })

/**
 * What an answer of `/activity` says was refused, as far as the audit wants to know. A sandbox names requests and nobody's
 * names: who made a request, control knows itself.
 */
export function decodeLateRefusals(value: unknown): readonly LateRefusal[] {
  const known = activity.safeParse(value)
  if (!known.success) return []
  return known.data.refused
    .map((each) => told.safeParse(each))
    .flatMap(({ data }) => (data === undefined ? [] : [data]))
    .filter(({ code }) => isRefusal(code) || START_FAILURES.includes(code))
}

export interface LateRefusalsDependencies {
  readonly store: SandboxStore
  /** Adds to the owner's audit what became of rows, once they are all there. */
  readonly tell: (owner: string, sandbox: string, refusals: readonly LateRefusal[]) => Promise<void>
  readonly log: Pick<Log, 'warn'>
}

/** Tells the owner's audit what sandboxd refused after control had let it in. sandboxd repeats itself, so nothing is stored. */
export class LateRefusals {
  readonly #deps: LateRefusalsDependencies
  /** What was told, of what sandboxd still repeats. */
  #known: ReadonlySet<string> = new Set()

  constructor(deps: LateRefusalsDependencies) {
    this.#deps = deps
  }

  /** Hears an answer of `/activity`. What cannot be told now is repeated at the next look. */
  async hear(answer: unknown): Promise<void> {
    const { store, tell, log } = this.#deps
    const record = store.read()
    const heard = decodeLateRefusals(answer)
    const isNew = heard.filter(({ requestId }) => !this.#known.has(requestId))
    if (record === undefined || isNew.length === 0) return
    try {
      await tell(record.owner, record.id, isNew)
      this.#known = new Set(heard.map(({ requestId }) => requestId))
    } catch (caught) {
      const { code, message } = nameFault(caught)
      log.warn('audit_delayed', { code, cause: message })
    }
  }
}
