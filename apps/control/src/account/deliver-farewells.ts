import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import type { Farewell, Farewells, Word } from './farewells.ts'

/** Sandboxes destroyed at a time. */
const AT_ONCE = 16
/** Until one has to have written down what it was told. */
const ANSWER_MS = 5_000
/** Until one has to be gone. */
const DESTROY_MS = 40_000

export interface DeliveryDependencies {
  readonly farewells: Farewells
  /** Tells a sandbox's object; throws when it is not known to have heard. */
  readonly tell: (sandbox: string, word: Word) => Promise<void>
  /** Has everybody cut off in a sandbox that is to be destroyed; throws when that is not certain. */
  readonly evict: (sandbox: string, account: string) => Promise<void>
  readonly nowMs: () => number
  readonly log: Log
}

/**
 * Tells sandboxes what is due; what fails is due again later. Cutting off is promised within seconds, so all are told of it at
 * once, and it waits for no destruction.
 */
export async function deliverFarewells(deps: DeliveryDependencies): Promise<void> {
  const due = deps.farewells.due(deps.nowMs())
  const last = due.filter(({ word }) => word.is === 'destroy')
  await Promise.all(
    due.map((farewell) => (farewell.word.is === 'destroy' ? evict(farewell, deps) : deliver(farewell, deps))),
  )
  // One that hangs keeps its own place only.
  const queue = last.values()
  const work = async (): Promise<void> => {
    for (const farewell of queue) await deliver(farewell, deps)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

function late(): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox does not answer')
}

async function evict({ sandbox, word }: Farewell, deps: DeliveryDependencies): Promise<void> {
  if (word.is !== 'destroy') return
  try {
    await withTimeout(deps.evict(sandbox, word.account), ANSWER_MS, late)
  } catch (caught) {
    // Its destruction is still to be told, and then it is tried again.
    deps.log.warn('eviction_delayed', { sandbox, code: SandwireError.from(caught).code })
  }
}

async function deliver(
  farewell: Farewell,
  { farewells, tell, nowMs, log }: DeliveryDependencies,
): Promise<void> {
  const { sandbox, word, tries } = farewell
  try {
    await withTimeout(tell(sandbox, word), word.is === 'destroy' ? DESTROY_MS : ANSWER_MS, late)
    farewells.heard(farewell)
  } catch (caught) {
    farewells.failed(farewell, nowMs())
    log.warn('farewell_delayed', { sandbox, code: SandwireError.from(caught).code, attempt: tries + 1 })
  }
}
