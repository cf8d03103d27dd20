import { hasSchema, numberOf, openSchema, type Row, type Schema, type Sql, textOf } from '../sql.ts'
import { type GatewayGrant, grantSchema, NO_TOKENS, type TokenUsage } from './grant.ts'

const SCHEMA: Schema = {
  version: 1,
  statements: [
    `CREATE TABLE gateway_grant (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      token_hash TEXT NOT NULL,
      grant_json TEXT NOT NULL,
      ended INTEGER NOT NULL,
      exhausted INTEGER NOT NULL,
      requests INTEGER NOT NULL
    )`,
    `CREATE TABLE model_usage (
      model TEXT PRIMARY KEY,
      input_tokens INTEGER NOT NULL,
      output_tokens INTEGER NOT NULL,
      cache_read_tokens INTEGER NOT NULL,
      cache_write_tokens INTEGER NOT NULL,
      cost INTEGER NOT NULL
    )`,
    `CREATE TABLE reservation (
      id TEXT PRIMARY KEY,
      model TEXT NOT NULL,
      cost INTEGER NOT NULL,
      tokens INTEGER NOT NULL,
      expires_ms INTEGER NOT NULL
    )`,
  ],
}

export interface StoredGrant {
  readonly grant: GatewayGrant
  readonly tokenHash: string
  readonly isEnded: boolean
  readonly isExhausted: boolean
  readonly requests: number
}

/** Cost and tokens that a request in progress may use at most. */
export interface Reservation {
  readonly id: string
  readonly model: string
  readonly costMicroUsd: number
  readonly tokens: number
  /** A request takes no longer; a reservation that is not settled by then is lost, and counts as spent. */
  readonly expiresMs: number
}

export type ModelUsage = TokenUsage & { readonly costMicroUsd: number }

/** A run's grant, its reservations and its usage. */
export class GrantStore {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Undefined without a grant: the database of a removed one stays empty. */
  read(): StoredGrant | undefined {
    if (!hasSchema(this.#sql)) return undefined
    openSchema(this.#sql, SCHEMA)
    const [row] = this.#sql.exec('SELECT * FROM gateway_grant').toArray()
    if (row === undefined) return undefined
    return {
      grant: grantSchema.parse(JSON.parse(textOf(row, 'grant_json'))),
      tokenHash: textOf(row, 'token_hash'),
      isEnded: numberOf(row, 'ended') === 1,
      isExhausted: numberOf(row, 'exhausted') === 1,
      requests: numberOf(row, 'requests'),
    }
  }

  /** Replaces the token and the limits, and keeps the usage. */
  write(grant: GatewayGrant, tokenHash: string): void {
    openSchema(this.#sql, SCHEMA)
    this.#sql.exec(
      `INSERT INTO gateway_grant VALUES (1, ?1, ?2, 0, 0, 0)
       ON CONFLICT (one) DO UPDATE SET token_hash = ?1, grant_json = ?2, ended = 0, exhausted = 0`,
      tokenHash,
      JSON.stringify(grant),
    )
  }

  end(): void {
    this.#sql.exec('UPDATE gateway_grant SET ended = 1')
  }

  markExhausted(): void {
    this.#sql.exec('UPDATE gateway_grant SET exhausted = 1')
  }

  addReservation({ id, model, costMicroUsd, tokens, expiresMs }: Reservation): void {
    this.#sql.exec(
      'INSERT INTO reservation VALUES (?, ?, ?, ?, ?)',
      id,
      model,
      costMicroUsd,
      tokens,
      expiresMs,
    )
    this.#sql.exec('UPDATE gateway_grant SET requests = requests + 1')
  }

  reservations(): readonly Reservation[] {
    return this.#sql
      .exec('SELECT * FROM reservation')
      .toArray()
      .map((row) => ({
        id: textOf(row, 'id'),
        model: textOf(row, 'model'),
        costMicroUsd: numberOf(row, 'cost'),
        tokens: numberOf(row, 'tokens'),
        expiresMs: numberOf(row, 'expires_ms'),
      }))
  }

  /** Removes a reservation; false when it was settled already. */
  takeReservation(id: string): boolean {
    return this.#sql.exec('DELETE FROM reservation WHERE id = ? RETURNING id', id).toArray().length > 0
  }

  addUsage(model: string, usage: ModelUsage): void {
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costMicroUsd } = usage
    this.#sql.exec(
      `INSERT INTO model_usage VALUES (?1, ?2, ?3, ?4, ?5, ?6)
       ON CONFLICT (model) DO UPDATE SET
         input_tokens = input_tokens + ?2, output_tokens = output_tokens + ?3,
         cache_read_tokens = cache_read_tokens + ?4, cache_write_tokens = cache_write_tokens + ?5,
         cost = cost + ?6`,
      model,
      inputTokens,
      outputTokens,
      cacheReadTokens,
      cacheWriteTokens,
      costMicroUsd,
    )
  }

  usageByModel(): Readonly<Record<string, ModelUsage>> {
    const rows = this.#sql.exec('SELECT * FROM model_usage').toArray()
    return Object.fromEntries(rows.map((row) => [textOf(row, 'model'), toUsage(row)]))
  }
}

function toUsage(row: Row): ModelUsage {
  return {
    ...NO_TOKENS,
    inputTokens: numberOf(row, 'input_tokens'),
    outputTokens: numberOf(row, 'output_tokens'),
    cacheReadTokens: numberOf(row, 'cache_read_tokens'),
    cacheWriteTokens: numberOf(row, 'cache_write_tokens'),
    costMicroUsd: numberOf(row, 'cost'),
  }
}
