import { describe, expect, test } from 'bun:test'
import { type Access, accessOf, type Grant, NEEDS, requireAccess } from '../src/sandbox/access.ts'

const SESSION = 'sandbox.one'
const OTHER = 'sandbox.two'

function grant(over: Partial<Grant> = {}): Grant {
  return { id: 'g', account: 'ann', role: 'viewer', expiresMs: 1_000, ...over }
}

function access(grants: readonly Grant[], session?: string, nowMs = 0): Access | undefined {
  return accessOf({ owner: 'owner', grants }, 'ann', { session, nowMs })
}

/** The needs that an access satisfies. */
function able(found: Access | undefined): readonly string[] {
  return NEEDS.filter((need) => {
    try {
      return requireAccess(found, need) !== undefined
    } catch {
      return false
    }
  })
}

describe('access (threat T4)', () => {
  test('gives the owner every right, with or without grants', () => {
    const found = accessOf({ owner: 'ann', grants: [] }, 'ann', { nowMs: 0 })
    expect(able(found)).toEqual([...NEEDS])
    expect(found?.grant).toBeUndefined()
  })

  test('does not exist for an account without a grant', () => {
    expect(access([])).toBeUndefined()
    expect(access([grant({ account: 'bob' })])).toBeUndefined()
    expect(() => requireAccess(undefined, 'watch')).toThrow('No sandbox has this id or name')
  })

  test('lets a viewer watch and a collaborator work, but neither own', () => {
    expect(able(access([grant()]))).toEqual(['watch', 'see'])
    expect(able(access([grant({ role: 'collaborator' })]))).toEqual(['watch', 'see', 'work'])
    expect(access([grant()])?.authority).toBe('viewer')
  })

  test('is limited to one session by a grant on it', () => {
    const guest = grant({ session: SESSION, role: 'collaborator' })
    expect(access([guest])).toBeUndefined()
    expect(access([guest], OTHER)).toBeUndefined()
    expect(able(access([guest], SESSION))).toEqual(['watch'])
    expect(access([guest], SESSION)?.authority).toBe('driver')
  })

  test('names what is shared in the error message', () => {
    const why = (found: Access | undefined, need: 'see' | 'work' | 'own'): string => {
      try {
        requireAccess(found, need)
        return ''
      } catch (error) {
        return String(error)
      }
    }
    const ofSession = 'one session is shared with you, not the sandbox'
    const helper = access([grant({ session: SESSION, role: 'collaborator' })], SESSION)
    const watcher = access([grant({ session: SESSION })], SESSION)
    expect(why(helper, 'work')).toContain(ofSession)
    expect(why(helper, 'see')).toContain(ofSession)
    expect(why(watcher, 'work')).toContain('you are a viewer')
    expect(why(access([grant()]), 'work')).toContain('you are a viewer')
    expect(why(access([grant({ role: 'collaborator' })]), 'own')).toContain('only the owner')
  })

  test('ends at the expiry of the grant, to the millisecond', () => {
    expect(access([grant()], undefined, 999)).toBeDefined()
    expect(access([grant()], undefined, 1_000)).toBeUndefined()
  })

  test('combines grants: the strongest role in a session, the widest in the sandbox', () => {
    const see = grant({ id: 'see' })
    const type = grant({ id: 'type', session: SESSION, role: 'collaborator' })
    const work = grant({ id: 'work', role: 'collaborator' })
    for (const both of [
      [see, type],
      [type, see],
    ]) {
      expect(access(both, SESSION)).toEqual({ need: 'see', authority: 'driver', grant: 'type' })
      expect(access(both, OTHER)).toEqual({ need: 'see', authority: 'viewer', grant: 'see' })
    }
    for (const all of [
      [work, type, see],
      [see, type, work],
    ])
      expect(access(all, SESSION)).toEqual({ need: 'work', authority: 'driver', grant: 'work' })
  })

  test('ignores expired grants', () => {
    const several = [
      grant({ id: 'old', role: 'collaborator', expiresMs: 10 }),
      grant({ id: 'watch', session: SESSION, role: 'collaborator' }),
      grant({ id: 'see' }),
    ]
    expect(access(several, SESSION, 20)).toEqual({ need: 'see', authority: 'driver', grant: 'watch' })
    expect(access(several, SESSION, 5)?.grant).toBe('old')
  })
})
