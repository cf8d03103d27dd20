import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import { OutboxDelivery } from '../outbox/delivery.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { OutboxPolicy } from '../outbox/policy.ts'
import type { PersistedMessage } from './persisted-message.ts'

/**
 * Messages for the operator's API, in order. Three quick attempts, then ever longer pauses; after about a day a message becomes a
 * dead letter, which the owner can send again.
 */
export const MESSAGE_OUTBOX: OutboxPolicy = {
  queue: 'messages',
  order: 'fifo',
  batchSize: 1,
  initialDelayMs: 0,
  firstRetryMs: 500,
  maxRetryMs: 15 * 60_000,
  deadLetterAfter: { ms: 24 * 60 * 60_000, attempts: 100 },
  maxPending: 10_000,
  overflow: 'dead_letter_oldest',
  onDuplicate: 'keep',
}

/** One destination per conversation, because each has an object of its own. */
const DESTINATION = 'api'
const REQUEST_MS = 10_000
/** The object stays in memory for pauses up to this long; during longer ones it may be evicted. */
const MAX_SLEEP_MS = 2_000

/** The operator's API; a conversation without one sends nothing. */
export interface MessageApi {
  readonly baseUrl: string
  readonly token: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
}

export interface MessageSenderDependencies {
  readonly outbox: Outbox
  readonly api: MessageApi | undefined
  /** Id of the conversation as the API knows it. */
  readonly sessionId: () => string
  readonly wakeBy: (atMs: number) => Promise<void>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly log: Log
}

/** Sends messages of a conversation to the operator's API. The conversation never waits for it. */
export class MessageSender {
  readonly #deps: MessageSenderDependencies
  readonly #delivery: OutboxDelivery

  constructor(deps: MessageSenderDependencies) {
    this.#deps = deps
    const { outbox, wakeBy, nowMs, sleep, log } = deps
    this.#delivery = new OutboxDelivery({
      outbox,
      send: ([{ key, body }]) => this.#send(key, body),
      onFailure: (error, { attempts }) =>
        log.warn('message_not_persisted', { code: SandwireError.from(error).code, attempt: attempts + 1 }),
      wakeBy,
      nowMs,
      sleepInMemory: { sleep, maxSleepMs: MAX_SLEEP_MS },
    })
  }

  /** Stores a message, in the turn in which it happens. */
  add(key: string, message: PersistedMessage): void {
    const { outbox, api, nowMs } = this.#deps
    if (api === undefined) return
    outbox.enqueue({ destination: DESTINATION, key, body: JSON.stringify(message) }, nowMs())
  }

  async deliver(): Promise<void> {
    const { outbox, api, nowMs, wakeBy } = this.#deps
    if (api === undefined || outbox.isEmpty) return
    // First, so that a crash only delays it.
    await wakeBy(nowMs() + REQUEST_MS)
    await this.#delivery.deliver()
  }

  /** When the next attempt is due; undefined when nothing is pending. */
  nextMs(): number | undefined {
    const { outbox, api, nowMs } = this.#deps
    return api === undefined ? undefined : outbox.nextMs(nowMs())
  }

  async #send(key: string, body: string): Promise<void> {
    const { api, sessionId } = this.#deps
    if (api === undefined) return
    const url = `${api.baseUrl}/internal/sessions/${encodeURIComponent(sessionId())}/messages`
    const late = (): SandwireError => new SandwireError('provider_unavailable', 'The API does not respond')
    const response = await withTimeout(
      api.fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'content-type': 'application/json', 'x-service-token': api.token, 'idempotency-key': key },
        body,
      }),
      REQUEST_MS,
      late,
    )
    await response.body?.cancel()
    if (!response.ok) throw new SandwireError('provider_unavailable', `The API answered ${response.status}`)
  }
}
