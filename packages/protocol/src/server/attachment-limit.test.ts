import { describe, expect, test } from 'bun:test'
import { SessionFixture, type Peer } from './server-session.fixture.ts'

const EVE = { principal: 'eve', authority: 'viewer' } as const
const OWNER = { principal: 'owner', authority: 'driver' } as const
/** So that identities of one test are no other's. */
let identity = 1_000

function come(fixture: SessionFixture, rights: { principal: string; authority: 'viewer' | 'driver' }): Peer {
  identity += 1
  return fixture.attach({ identity, rights })
}
const isIn = (peer: Peer): boolean => peer.refusal().error === undefined

describe('a session that one account has filled', () => {
  test('[B3] admits other accounts and closes the newest attachment of the largest one', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 8 } })
    const own = come(fixture, OWNER)
    const crowd = Array.from({ length: 7 }, () => come(fixture, EVE))
    expect(crowd.every(isIn)).toBe(true)
    expect(isIn(come(fixture, { principal: 'ann', authority: 'viewer' }))).toBe(true)
    expect(crowd.map((peer) => peer.refusal().error)).toEqual([
      ...Array.from({ length: 6 }, () => undefined),
      'too_many_attachments',
    ])
    expect(come(fixture, EVE).refusal().error).toBe('too_many_attachments')
    expect(isIn(come(fixture, OWNER))).toBe(true)
    expect(isIn(own)).toBe(true)
  })

  test('[B3] keeps a detached attachment of a smaller account', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 4 } })
    come(fixture, OWNER)
    const ann = { principal: 'ann', authority: 'viewer' } as const
    fixture.attach({ identity: 7, rights: ann }).disconnect()
    for (let each = 0; each < 10; each += 1) come(fixture, EVE)
    expect(come(fixture, EVE).refusal().error).toBe('too_many_attachments')
    const back = fixture.attach({ identity: 7, rights: ann, hello: { resuming: true } })
    expect(back.received('welcome')).toHaveLength(1)
  })

  test('[B3] never closes the driver, nor attachments for an account that has as many', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 4 } })
    const driving = Array.from({ length: 4 }, () => come(fixture, OWNER))
    expect(isIn(come(fixture, EVE))).toBe(true)
    expect(isIn(come(fixture, EVE))).toBe(true)
    expect(come(fixture, EVE).refusal().error).toBe('too_many_attachments')
    expect(driving.map(isIn)).toEqual([true, true, false, false])
  })

  test('[B8] evicts an attachment that may not drive for an account that may and has none', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 3 } })
    const watchers = ['a', 'b', 'c'].map((principal) => come(fixture, { principal, authority: 'viewer' }))
    expect(come(fixture, { principal: 'd', authority: 'viewer' }).refusal().error).toBe(
      'too_many_attachments',
    )
    expect(isIn(come(fixture, OWNER))).toBe(true)
    expect(watchers.map(isIn)).toEqual([true, true, false])
    expect(come(fixture, OWNER).refusal().error).toBe('too_many_attachments')
  })

  test('[B4] admits connections of other accounts and closes the newest one without a hello', () => {
    const fixture = new SessionFixture({ limits: { maxAttachments: 2 } })
    const silent = Array.from({ length: 4 }, () => fixture.connect(EVE))
    expect(silent.every(isIn)).toBe(true)
    expect(fixture.connect(EVE).refusal().error).toBe('too_many_attachments')
    expect(isIn(come(fixture, OWNER))).toBe(true)
    expect(silent.map(isIn)).toEqual([true, true, true, false])
  })
})
