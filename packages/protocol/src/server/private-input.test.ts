import { describe, expect, test } from 'bun:test'
import { READ_AHEAD_BYTES } from '../limits.ts'
import { SessionFixture } from './server-session.fixture.ts'

const AGENT = {
  isAgent: true,
  principal: 'agent',
  name: 'claude',
  acknowledgement: 'connection',
  hasSilenceTimeout: false,
} as const

/** A terminal that an agent has opened and drives, and a person who may type. */
function setUp() {
  const fixture = new SessionFixture({ mode: 'pty', overflow: 'trim' })
  const agent = fixture.attach({ identity: 1, rights: AGENT })
  const person = fixture.attach({
    identity: 2,
    rights: { outputFrom: 'end', roleWithoutLease: 'collaborator' },
  })
  fixture.wait(100)
  for (const peer of [agent, person]) peer.received()
  return { fixture, agent, person }
}

describe('private input', () => {
  test('[L14] is begun and ended by people who may write, and everyone is told', () => {
    const { fixture, agent, person } = setUp()
    person.sendMessage({ type: 'private', on: true })
    fixture.wait(100)
    expect(agent.received('presence')).toMatchObject([
      { private: 'a2', attachments: [{ name: 'claude', agent: true }, {}] },
    ])
    person.sendMessage({ type: 'private', on: false })
    fixture.wait(100)
    expect(agent.received('presence')).toMatchObject([{ private: null }])
  })

  test('[L14] cannot be begun or ended by agents or viewers', () => {
    const { fixture, agent, person } = setUp()
    const viewer = fixture.attach({ identity: 3, role: 'viewer' })
    fixture.wait(100)
    person.received()
    agent.sendMessage({ type: 'private', on: true })
    viewer.sendMessage({ type: 'private', on: true })
    fixture.wait(100)
    expect(person.received('presence')).toEqual([])
    person.sendMessage({ type: 'private', on: true })
    agent.sendMessage({ type: 'private', on: false })
    viewer.sendMessage({ type: 'private', on: false })
    fixture.wait(100)
    expect(person.received('presence')).toMatchObject([{ private: 'a2' }])
  })

  test('[L14] lasts while its owner is disconnected, and ends when it is forgotten', () => {
    const { fixture, agent, person } = setUp()
    person.sendMessage({ type: 'private', on: true })
    person.disconnect()
    fixture.wait(59_000)
    expect(agent.received('presence').at(-1)).toMatchObject({ private: 'a2' })
    fixture.output('secret')
    fixture.wait(2_000)
    expect(agent.received('presence').at(-1)).toMatchObject({ private: null })
  })

  test('[L15] agents get a gap in place of what was written meanwhile', () => {
    const { fixture, agent, person } = setUp()
    fixture.output('before')
    person.sendMessage({ type: 'private', on: true })
    agent.received()
    fixture.output('secret')
    expect(agent.received('stdout')).toEqual([])
    expect(person.received('stdout')).toMatchObject([{ text: 'before' }, { text: 'secret' }])
    person.sendMessage({ type: 'private', on: false })
    fixture.output('after')
    const received = agent.received()
    expect(received).toContainEqual({ type: 'gap', from: 6, to: 12 })
    expect(received.filter(({ type }) => type === 'stdout')).toEqual([{ type: 'stdout', text: 'after' }])
  })

  test('[L15] input of an agent is refused', () => {
    const { agent, person } = setUp()
    person.sendMessage({ type: 'private', on: true })
    agent.sendInput('x')
    expect(agent.received('error')).toMatchObject([{ code: 'role_refused', fatal: true }])
  })

  test('[L15] an agent that drives does not pause the process', () => {
    const { fixture, person } = setUp()
    person.sendMessage({ type: 'private', on: true })
    fixture.takeEffects()
    fixture.output('x'.repeat(READ_AHEAD_BYTES * 4))
    expect(fixture.takeEffects().map((effect) => effect.do)).not.toContain('pause')
  })

  test('[L15] an agent gets the exit after the gap', () => {
    const { fixture, agent, person } = setUp()
    person.sendMessage({ type: 'private', on: true })
    fixture.output('secret')
    fixture.exit()
    expect(agent.received().map(({ type }) => type)).toEqual(['presence', 'gap', 'exit', 'closed'])
  })

  test('[L15] an agent gets no snapshot and cannot resume', () => {
    const { fixture, person } = setUp()
    person.sendMessage({ type: 'private', on: true })
    fixture.output('secret')
    person.sendMessage({ type: 'private', on: false })
    fixture.takeEffects()
    const late = fixture.attach({ identity: 9, rights: AGENT })
    expect(fixture.takeEffects().map((effect) => effect.do)).not.toContain('snapshot')
    expect(late.received('stdout')).toEqual([])
    late.disconnect()
    const again = fixture.attach({ identity: 9, rights: AGENT, hello: { resuming: true, received: 0 } })
    expect(again.received('error')).toMatchObject([{ code: 'resume_lost' }])
  })

  test('[L15] an agent that falls behind the log gets a gap', () => {
    const fixture = new SessionFixture({ mode: 'pty', overflow: 'trim', limits: { logBytes: 65_536 } })
    fixture.attach({ identity: 1 })
    const agent = fixture.attach({ identity: 2, rights: AGENT })
    fixture.wait(100)
    fixture.session.blocked(2)
    fixture.takeEffects()
    for (let count = 0; count < 8; count += 1) {
      fixture.output('x'.repeat(32_768))
      fixture.wait(31_000)
    }
    fixture.run(fixture.session.drained(2, fixture.nowMs))
    expect(agent.received('gap')).toHaveLength(1)
    expect(fixture.takeEffects().map((effect) => effect.do)).not.toContain('snapshot')
  })
})
