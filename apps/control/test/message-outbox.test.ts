import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { Random } from '@sandwire/testing'
import { MESSAGE_OUTBOX, MessageSender } from '../src/conversation/message-outbox.ts'
import { Outbox, OUTBOX_SCHEMA } from '../src/outbox/outbox.ts'
import { sqlOf } from './support/bun-sql.ts'

const HOUR_MS = 60 * 60 * 1000
const MESSAGE_EVERY_MS = 20_000
const SEEDS = 10

/** A conversation's messages and an API that is down for an hour, with evictions, at a simulated time. */
class Outage {
  readonly #random: Random
  readonly #sql = sqlOf(new Database(':memory:'))
  #nowMs = 0
  #alarmMs = Number.POSITIVE_INFINITY
  #sender: MessageSender
  /** Keys in the order in which the API stored them. */
  readonly stored: string[] = []
  requests = 0

  constructor(seed: number) {
    this.#random = new Random(seed)
    for (const statement of OUTBOX_SCHEMA) this.#sql.exec(statement)
    this.#sender = this.#open()
  }

  #open(): MessageSender {
    const exec = (query: string, ...bindings: (string | number | null)[]) =>
      this.#sql.exec(query, ...bindings).toArray()
    return new MessageSender({
      outbox: new Outbox(exec, MESSAGE_OUTBOX),
      api: { baseUrl: 'https://api.example', token: 't', fetch: async (_, init) => this.#answer(init) },
      sessionId: () => 's',
      wakeBy: async (atMs) => void (this.#alarmMs = Math.min(this.#alarmMs, atMs)),
      nowMs: () => this.#nowMs,
      // The object is evicted while it sleeps, so only the alarm counts.
      sleep: () => new Promise(() => undefined),
      log: { warn: () => undefined, info: () => undefined, error: () => undefined },
    })
  }

  #answer({ headers }: RequestInit): Response {
    this.requests += 1
    const key = (headers as Record<string, string>)['idempotency-key'] ?? ''
    const isDown = this.#nowMs >= HOUR_MS && this.#nowMs < 2 * HOUR_MS
    // Shortly before it goes down, and when it comes back, it stores messages without answering.
    const isFlaky = this.#nowMs > 0.9 * HOUR_MS && this.#nowMs < 2.1 * HOUR_MS && this.#random.chance(0.3)
    if (isDown) return new Response('', { status: 503 })
    if (!this.stored.includes(key)) this.stored.push(key)
    if (isFlaky) throw new Error('The connection was lost')
    return Response.json({})
  }

  async run(): Promise<string[]> {
    const keys: string[] = []
    while (this.#nowMs < 4 * HOUR_MS) {
      const nextMs = this.#nowMs < 3 * HOUR_MS ? keys.length * MESSAGE_EVERY_MS : Number.POSITIVE_INFINITY
      this.#nowMs = Math.min(Math.max(this.#nowMs, Math.min(nextMs, this.#alarmMs)), 4 * HOUR_MS)
      if (this.#random.chance(0.2)) this.#sender = this.#open()
      if (this.#nowMs >= nextMs) {
        keys.push(`key-${keys.length}`)
        this.#sender.add(keys.at(-1) ?? '', { role: 'user' } as never)
      }
      if (this.#nowMs >= this.#alarmMs) this.#alarmMs = Number.POSITIVE_INFINITY
      await this.#sender.deliver()
      const next = this.#sender.nextMs()
      if (next !== undefined) this.#alarmMs = Math.min(this.#alarmMs, Math.max(next, this.#nowMs + 1))
    }
    return keys
  }
}

test('an API that was down for an hour has every message once and in order', async () => {
  for (let seed = 0; seed < SEEDS; seed += 1) {
    const outage = new Outage(seed)
    const keys = await outage.run()
    expect(outage.stored).toEqual(keys)
    // It is not flooded while it is down.
    expect(outage.requests).toBeLessThan(2 * keys.length)
  }
})
