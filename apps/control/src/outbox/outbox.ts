import { type Exec, numberOf, type Row, textOf } from '../sql.ts'
import { dueInMs, isDue, type OutboxMessage, type OutboxPolicy, retryDelayMs } from './policy.ts'

export const OUTBOX_SCHEMA: readonly string[] = [
  // AUTOINCREMENT: a number that a request in flight refers to is never given to another message.
  `CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    destination TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    queued_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    is_escalated INTEGER NOT NULL,
    UNIQUE (queue, destination, key)
  )`,
  'CREATE INDEX outbox_by_destination ON outbox (queue, destination, seq)',
  `CREATE TABLE dead_letters (
    seq INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    destination TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    queued_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL
  )`,
]

/** Dead letters kept per queue for an operator to look at; the oldest are deleted first. */
const MAX_DEAD_LETTERS = 100

export interface NewMessage {
  readonly destination: string
  readonly key: string
  readonly body: string
}

/** Messages that are sent together; not empty, oldest first. */
export type Batch = readonly [OutboxMessage, ...OutboxMessage[]]

function toMessage(row: Row): OutboxMessage {
  return {
    seq: numberOf(row, 'seq'),
    destination: textOf(row, 'destination'),
    key: textOf(row, 'key'),
    body: textOf(row, 'body'),
    queuedMs: numberOf(row, 'queued_ms'),
    attempts: numberOf(row, 'attempts'),
    nextMs: numberOf(row, 'next_ms'),
    isEscalated: numberOf(row, 'is_escalated') === 1,
  }
}

/** One durable queue: a message is stored until its destination has confirmed it. */
export class Outbox {
  readonly policy: OutboxPolicy
  readonly #exec: Exec

  constructor(exec: Exec, policy: OutboxPolicy) {
    this.#exec = exec
    this.policy = policy
  }

  /** Stores a message, in the turn of the change that it reports. False when the queue is full and refuses it. */
  enqueue(message: NewMessage, nowMs: number, maxPending = this.policy.maxPending): boolean {
    const { queue, order, initialDelayMs, onDuplicate, overflow } = this.policy
    const { destination, key, body } = message
    const known = this.#find(destination, key)
    if (known !== undefined && onDuplicate === 'keep') return true
    if (known === undefined && overflow === 'refuse' && this.count >= maxPending) return false
    // A message that is queued again and again must not put its own escalation off.
    const isSame = known !== undefined && !known.isEscalated && known.body === body
    if (known !== undefined) this.#delete(known.seq)
    const nextMs = nowMs + initialDelayMs
    this.#exec(
      `INSERT INTO outbox (queue, destination, key, body, queued_ms, attempts, next_ms, is_escalated)
       VALUES (?, ?, ?, ?, ?, 0, ?, 0)`,
      queue,
      destination,
      key,
      body,
      isSame ? known.queuedMs : nowMs,
      nextMs,
    )
    // Nor does it wait for the back-off of an earlier one.
    if (order === 'fifo')
      this.#exec(
        `UPDATE outbox SET next_ms = ? WHERE next_ms > ? AND seq =
         (SELECT MIN(seq) FROM outbox WHERE queue = ? AND destination = ?)`,
        nextMs,
        nextMs,
        queue,
        destination,
      )
    this.#bound()
    return true
  }

  /** Oldest first. */
  pending(): readonly OutboxMessage[] {
    return this.#exec('SELECT * FROM outbox WHERE queue = ? ORDER BY seq', this.policy.queue).map(toMessage)
  }

  /** The message that is next in each lane: of each destination, or each message where there is no order. */
  heads(): readonly OutboxMessage[] {
    if (this.policy.order === 'none') return this.pending()
    return this.#exec(
      `SELECT * FROM outbox WHERE seq IN (SELECT MIN(seq) FROM outbox WHERE queue = ? GROUP BY destination)
       ORDER BY seq`,
      this.policy.queue,
    ).map(toMessage)
  }

  due(nowMs: number): readonly OutboxMessage[] {
    return this.heads().filter((message) => isDue(message, this.policy, nowMs))
  }

  /** What is to be sent next in the lane of a message; undefined when the lane is empty. */
  nextBatch({ seq, destination }: OutboxMessage): Batch | undefined {
    const { queue, order, batchSize } = this.policy
    const rows =
      order === 'fifo'
        ? this.#exec(
            'SELECT * FROM outbox WHERE queue = ? AND destination = ? ORDER BY seq LIMIT ?',
            queue,
            destination,
            batchSize,
          )
        : this.#exec('SELECT * FROM outbox WHERE seq = ?', seq)
    const [first, ...rest] = rows.map(toMessage)
    return first === undefined ? undefined : [first, ...rest]
  }

  /** Forgets a batch that its destination has confirmed. */
  confirm(batch: Batch): void {
    const [first] = batch
    this.#exec(
      'DELETE FROM outbox WHERE queue = ? AND destination = ? AND seq BETWEEN ? AND ?',
      this.policy.queue,
      first.destination,
      first.seq,
      batch.at(-1)?.seq ?? first.seq,
    )
  }

  /** Counts a failed attempt on the first message of a batch, which holds up those after it. */
  fail([{ seq, attempts, queuedMs }]: Batch, nowMs: number): void {
    const { deadLetterAfter: limit } = this.policy
    if (limit !== undefined && attempts + 1 >= limit.attempts && nowMs >= queuedMs + limit.ms)
      return this.#bury(seq, attempts + 1)
    this.#exec(
      'UPDATE outbox SET attempts = ?, next_ms = ? WHERE seq = ?',
      attempts + 1,
      nowMs + retryDelayMs(attempts + 1, this.policy),
      seq,
    )
  }

  /** The fallback has taken effect for every message up to this one. */
  markEscalated(lastSeq: number): void {
    this.#exec('UPDATE outbox SET is_escalated = 1 WHERE queue = ? AND seq <= ?', this.policy.queue, lastSeq)
  }

  get count(): number {
    const [row] = this.#exec('SELECT COUNT(*) AS count FROM outbox WHERE queue = ?', this.policy.queue)
    return row === undefined ? 0 : numberOf(row, 'count')
  }

  get isEmpty(): boolean {
    return this.#exec('SELECT seq FROM outbox WHERE queue = ? LIMIT 1', this.policy.queue).length === 0
  }

  /** When the next attempt is due; undefined when nothing is pending. */
  nextMs(nowMs: number): number | undefined {
    const waits = this.heads().map((message) => dueInMs(message, this.policy, nowMs))
    return waits.length === 0 ? undefined : nowMs + Math.min(...waits)
  }

  deadLetters(): readonly (NewMessage & { readonly attempts: number })[] {
    return this.#exec('SELECT * FROM dead_letters WHERE queue = ? ORDER BY seq', this.policy.queue).map(
      (row) => ({
        destination: textOf(row, 'destination'),
        key: textOf(row, 'key'),
        body: textOf(row, 'body'),
        attempts: numberOf(row, 'attempts'),
      }),
    )
  }

  /** Queues the dead letters again, after what is pending; returns their number. */
  replayDeadLetters(nowMs: number): number {
    const letters = this.deadLetters()
    this.#exec('DELETE FROM dead_letters WHERE queue = ?', this.policy.queue)
    for (const { destination, key, body } of letters) this.enqueue({ destination, key, body }, nowMs)
    return letters.length
  }

  #find(destination: string, key: string): OutboxMessage | undefined {
    const { queue } = this.policy
    const query = 'SELECT * FROM outbox WHERE queue = ? AND destination = ? AND key = ?'
    return this.#exec(query, queue, destination, key).map(toMessage)[0]
  }

  #delete(seq: number): void {
    this.#exec('DELETE FROM outbox WHERE seq = ?', seq)
  }

  #bound(): void {
    const { queue, overflow, maxPending } = this.policy
    if (overflow === 'refuse') return
    if (overflow === 'drop_escalated') {
      this.#exec(
        `DELETE FROM outbox WHERE queue = ? AND is_escalated = 1
         AND seq NOT IN (SELECT seq FROM outbox WHERE queue = ? ORDER BY seq DESC LIMIT ?)`,
        queue,
        queue,
        maxPending,
      )
      return
    }
    const surplus = this.count - maxPending
    if (surplus <= 0) return
    const query = 'SELECT * FROM outbox WHERE queue = ? ORDER BY seq LIMIT ?'
    for (const { seq, attempts } of this.#exec(query, queue, surplus).map(toMessage))
      this.#bury(seq, attempts)
  }

  #bury(seq: number, attempts: number): void {
    const { queue } = this.policy
    this.#exec(
      `INSERT OR REPLACE INTO dead_letters
       SELECT seq, queue, destination, key, body, queued_ms, ? FROM outbox WHERE seq = ?`,
      attempts,
      seq,
    )
    this.#delete(seq)
    this.#exec(
      `DELETE FROM dead_letters WHERE queue = ?
       AND seq NOT IN (SELECT seq FROM dead_letters WHERE queue = ? ORDER BY seq DESC LIMIT ?)`,
      queue,
      queue,
      MAX_DEAD_LETTERS,
    )
  }
}
