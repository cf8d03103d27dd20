import { describe, expect, test } from 'bun:test'
import { CreateLedger } from './create-ledger.ts'

const create = (createId: string, session: string, principal = 'p', fingerprint = 'f') => ({
  principal,
  createId,
  fingerprint,
  session,
})

describe('CreateLedger', () => {
  test('[C1] returns the session of the first create for a repeated one', () => {
    const ledger = new CreateLedger()
    expect(ledger.claim(create('1', 's1'))).toEqual({ kind: 'new' })
    expect(ledger.claim(create('1', 's2'))).toEqual({ kind: 'existing', session: 's1' })
    expect(ledger.claim(create('1', 's3'))).toEqual({ kind: 'existing', session: 's1' })
  })

  test('[C2] reports a conflict for other parameters, also after the session is gone', () => {
    const ledger = new CreateLedger()
    ledger.claim(create('1', 's1'))
    expect(ledger.claim(create('1', 's2', 'p', 'other'))).toEqual({ kind: 'conflict' })
    ledger.markEnded('s1')
    expect(ledger.claim(create('1', 's2', 'p', 'other'))).toEqual({ kind: 'conflict' })
  })

  test('[C3] never lets an id create again', () => {
    const ledger = new CreateLedger()
    ledger.claim(create('1', 's1'))
    ledger.markEnded('s1')
    ledger.markEnded('s1')
    expect(ledger.claim(create('1', 's2'))).toEqual({ kind: 'gone' })
  })

  test('[C4] separates principals, even those with similar names', () => {
    const ledger = new CreateLedger()
    expect(ledger.claim(create('1', 's1', 'a'))).toEqual({ kind: 'new' })
    expect(ledger.claim(create('1', 's2', 'b'))).toEqual({ kind: 'new' })
    expect(ledger.claim(create('"]', 's3', '["x","y'))).toEqual({ kind: 'new' })
    expect(ledger.claim(create('y","', 's4', 'x'))).toEqual({ kind: 'new' })
    expect(ledger.claim(create('__proto__', 's5', '__proto__'))).toEqual({ kind: 'new' })
  })

  test('[C6] forgets the id of a session that never started', () => {
    const ledger = new CreateLedger()
    ledger.claim(create('1', 's1'))
    ledger.release('s1')
    expect(ledger.claim(create('1', 's2'))).toEqual({ kind: 'new' })
    ledger.release('nobody')
    ledger.markEnded('nobody')
    expect(ledger.size).toBe(1)
  })

  test('[C11] forgets the oldest tombstones first, and no living session', () => {
    const ledger = new CreateLedger(3)
    ledger.claim(create('living', 'alive'))
    for (let number = 1; number <= 10; number += 1) {
      ledger.claim(create(`c${number}`, `s${number}`))
      ledger.markEnded(`s${number}`)
    }
    expect(ledger.size).toBe(4)
    expect(ledger.claim(create('living', 'x'))).toEqual({ kind: 'existing', session: 'alive' })
    expect(ledger.claim(create('c10', 'x'))).toEqual({ kind: 'gone' })
    expect(ledger.claim(create('c8', 'x'))).toEqual({ kind: 'gone' })
    expect(ledger.claim(create('c7', 'x'))).toEqual({ kind: 'new' })
  })
})
