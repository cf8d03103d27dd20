import { SandwireError } from '@sandwire/protocol'
import { within } from '../http/within.ts'
import type { Log } from '../log.ts'
import type { Farewell, Farewells, Word } from './farewells.ts'

/** Sandboxes told at a time. */
const AT_ONCE = 16
/** Until one has to have heard it; destroying takes longest. */
const ANSWER_MS = 40_000

export interface DeliveryDependencies {
  readonly farewells: Farewells
  /** Tells a sandbox's object; throws when it is not known to have heard. */
  readonly tell: (sandbox: string, word: Word) => Promise<void>
  readonly nowMs: () => number
  readonly log: Log
}

/** Tells sandboxes what is due; what fails is due again later. */
export async function deliverFarewells(deps: DeliveryDependencies): Promise<void> {
  const due = deps.farewells.due(deps.nowMs())
  for (let first = 0; first < due.length; first += AT_ONCE)
    await Promise.all(due.slice(first, first + AT_ONCE).map((farewell) => deliver(farewell, deps)))
}

async function deliver(
  farewell: Farewell,
  { farewells, tell, nowMs, log }: DeliveryDependencies,
): Promise<void> {
  const { sandbox, word, tries } = farewell
  const late = (): SandwireError => new SandwireError('sandbox_unreachable', 'The sandbox does not answer')
  try {
    await within(tell(sandbox, word), ANSWER_MS, late)
    farewells.heard(farewell)
  } catch (caught) {
    farewells.failed(farewell, nowMs())
    log.warn('farewell_delayed', { sandbox, code: SandwireError.from(caught).code, attempt: tries + 1 })
  }
}
