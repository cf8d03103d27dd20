import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { GrantStore } from '../src/credentials/grant-store.ts'
import type { GatewayGrant } from '../src/credentials/grant.ts'
import { openGatewayTokens } from '../src/credentials/grant-token.ts'
import { type CostBound, decide } from '../src/credentials/ledger.ts'
import { sqlOf } from './support/bun-sql.ts'

const GRANT: GatewayGrant = {
  run: 'run1',
  sandbox: 'sandbox1',
  expiresMs: 1_000_000,
  provider: 'anthropic',
  models: [],
  budgetMicroUsd: 1_000_000,
  maxOutputTokens: 32_000,
  hosts: [],
}
/** $3 per million input tokens, $15 per million output tokens. */
const BOUND: CostBound = {
  model: 'm',
  inputTokens: 10_000,
  inputMicroUsd: 30_000,
  outputTokens: 32_000,
  outputMicroUsd: 15,
}
const NOTHING = { spentMicroUsd: 0, spentTokens: 0, reservations: [] }
const held = (costMicroUsd: number, expiresMs: number) => ({
  id: 'r',
  model: 'm',
  costMicroUsd,
  tokens: 1,
  expiresMs,
})

describe('budget of a run', () => {
  test('reserves the most that a request may cost', () => {
    expect(decide(GRANT, NOTHING, BOUND, 0)).toEqual({
      kind: 'reserved',
      outputTokens: 32_000,
      costMicroUsd: 510_000,
      tokens: 42_000,
    })
  })

  test('lowers the output to what the rest affords', () => {
    const decision = decide(GRANT, { ...NOTHING, spentMicroUsd: 820_000 }, BOUND, 0)
    expect(decision).toMatchObject({ kind: 'reserved', outputTokens: 10_000, costMicroUsd: 180_000 })
  })

  test('waits while other requests hold the rest, and never exceeds the budget together with them', () => {
    const account = { ...NOTHING, reservations: [held(510_000, 100), held(480_000, 100)] }
    expect(decide(GRANT, account, BOUND, 0)).toEqual({ kind: 'wait' })
  })

  test('counts reservations that were never settled as spent', () => {
    const account = { ...NOTHING, reservations: [held(510_000, 100), held(480_000, 100)] }
    expect(decide(GRANT, account, BOUND, 100)).toMatchObject({ kind: 'exhausted' })
  })

  test('ends the run when the rest does not pay a useful response', () => {
    const decision = decide(GRANT, { ...NOTHING, spentMicroUsd: 968_000 }, BOUND, 0)
    expect(decision).toEqual({
      kind: 'exhausted',
      reason: expect.stringContaining('$0.97 of $1.00 is spent') as string,
    })
  })

  test('limits the tokens of a run and of a request', () => {
    expect(decide({ ...GRANT, maxOutputTokens: 500 }, NOTHING, BOUND, 0)).toMatchObject({ outputTokens: 500 })
    expect(decide({ ...GRANT, maxTokens: 12_000 }, NOTHING, BOUND, 0)).toMatchObject({ outputTokens: 2_000 })
    expect(decide({ ...GRANT, maxTokens: 10_100 }, NOTHING, BOUND, 0)).toMatchObject({
      kind: 'exhausted',
      reason: 'The run has reached its limit of 10100 tokens',
    })
  })
})

describe('stored grant', () => {
  test('settles a reservation once, and keeps usage when the token is replaced', () => {
    const store = new GrantStore(sqlOf(new Database(':memory:')))
    expect(store.read()).toBeUndefined()
    store.write(GRANT, 'hash1')
    store.addReservation(held(5, 9))
    expect(store.takeReservation('r')).toBe(true)
    expect(store.takeReservation('r')).toBe(false)
    const usage = {
      inputTokens: 1,
      outputTokens: 2,
      cacheReadTokens: 3,
      cacheWriteTokens: 4,
      costMicroUsd: 5,
    }
    store.addUsage('m', usage)
    store.end()
    store.write(GRANT, 'hash2')
    expect(store.read()).toMatchObject({ tokenHash: 'hash2', isEnded: false, requests: 1 })
    expect(store.usageByModel()).toEqual({ m: usage })
  })
})

describe('gateway token', () => {
  test('names its run, and only runs of this server', async () => {
    const key = crypto.getRandomValues(new Uint8Array(32))
    const tokens = await openGatewayTokens(key)
    const { token, hash } = await tokens.mint('run1')
    expect(await tokens.parse(token)).toEqual({ run: 'run1', hash })
    const other = await openGatewayTokens(crypto.getRandomValues(new Uint8Array(32)))
    expect(await other.parse(token)).toBeUndefined()
    for (const bad of ['', 'sgw_', token.slice(1), `${token}x`, token.replace('run1', 'run2')])
      expect(await tokens.parse(bad)).toBeUndefined()
  })
})
