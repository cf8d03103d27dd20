import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  openSync,
  readdirSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import type { Resolve } from '../beneath/resolve.ts'
import {
  finish,
  hasSecretInside,
  containsSecret,
  lookOutside,
  openFixture,
  plantLinks,
  RESOLVERS,
  type Fixture,
  VERBS,
} from './files.fixture.ts'
import { list } from './listing.ts'

/** Paths that lead outside by their text alone. */
const LEXICAL = [
  '../outside/f',
  '../workspace-evil/f',
  'inside/../../outside/f',
  'inside/./../../outside/f',
  './../outside/f',
  '..',
  '../',
  'inside/deep/../../..',
  '/etc/passwd',
  '//etc/passwd',
  '',
  'plain\0/../../outside/f',
  'a/'.repeat(2048),
  'x'.repeat(256),
  '\ud800',
  'nothing/../../outside/f',
]
/** Names that only resemble a traversal. */
const HARMLESS = [
  '..%2foutside/f',
  '%2e%2e/outside/f',
  '..;/outside/f',
  '....//outside/f',
  '\\..\\outside',
  'file:///etc/passwd',
  '..\\outside\\f',
]

function attempt(
  fixture: Fixture,
  verb: (typeof VERBS)[string],
  at: string,
): { code: string; output: string } {
  try {
    return { code: 'done', output: JSON.stringify(verb(fixture.context, at)) ?? '' }
  } catch (error) {
    const { code, message } = SandwireError.from(error)
    return { code, output: message }
  }
}

function expectNoSecret(output: string): void {
  expect([output, containsSecret(output)]).toEqual([output, false])
}

/** Runs in a fixture and expects that nothing outside was changed or copied in. */
function inFixture(resolve: Resolve, run: (fixture: Fixture) => void): void {
  using fixture = openFixture(resolve)
  const before = lookOutside(fixture)
  run(fixture)
  expect(lookOutside(fixture)).toEqual([...before])
  expect(hasSecretInside(fixture)).toBe(false)
}

describe.each([...RESOLVERS])('paths resolved by %s', (_, resolve) => {
  describe.each(Object.entries(VERBS))('%s', (name, verb) => {
    test('(threat T12) (threat T16) refuses every path that leads outside by its text', () => {
      inFixture(resolve, (fixture) => {
        for (const at of LEXICAL) {
          const { code, output } = attempt(fixture, verb, at)
          expect([at, code]).toEqual([at, 'path_refused'])
          expectNoSecret(output)
        }
      })
    })

    test('(threat T12) treats text that only resembles a traversal as a name', () => {
      inFixture(resolve, (fixture) => {
        for (const at of HARMLESS) expectNoSecret(attempt(fixture, verb, at).output)
      })
    })

    test('(threat T13) never follows a link out', () => {
      using held = openFixture(resolve)
      const fd = openSync(path.join(held.outside, 'outside'), 'r')
      for (const tail of ['', '/f', '/new', '/deep/f', '/../outside/f'])
        inFixture(resolve, (fixture) => {
          for (const link of plantLinks(fixture, fd)) {
            expectNoSecret(attempt(fixture, verb, link + tail).output)
            // Restored for the next link.
            writeFileSync(path.join(fixture.root, 'plain'), 'harmless')
          }
        })
      closeSync(fd)
    })

    test('(threat T15) does not block on a pipe and does not read a device', () => {
      using fixture = openFixture(resolve)
      Bun.spawnSync(['mkfifo', path.join(fixture.root, 'pipe')])
      const isRoot = process.getuid?.() === 0
      if (isRoot) Bun.spawnSync(['mknod', path.join(fixture.root, 'zero'), 'c', '1', '5'])
      for (const at of isRoot ? ['pipe', 'zero'] : ['pipe']) {
        const { code } = attempt(fixture, verb, at)
        if (['read', 'write', 'write through symlinks', 'copy away'].includes(name))
          expect([at, code]).toEqual([at, 'special_file'])
      }
    })
  })

  test('(threat T15) accepts every name that a file system allows', () => {
    using fixture = openFixture(resolve)
    const names = [
      '-rf',
      ' \n',
      '\x1b]0;x\x07',
      '🦜',
      '\u202e',
      'a\'b"c\\d',
      '…',
      'x'.repeat(255),
      '\udcff\udc80',
    ]
    for (const name of names) attempt(fixture, VERBS['write'] ?? (() => 0), name)
    const { result } = finish(list(fixture.context, '.', { maxEntries: 100, timeMs: 1000 }))
    const listed = result.entries.map((entry) => entry.name)
    expect(listed.toSorted()).toEqual([...names, 'inside', 'plain'].toSorted())
    for (const name of names)
      expect(attempt(fixture, VERBS['read'] ?? (() => 0), name).output).toBe('"written"')
  })

  test('(threat T15) copies an 8 TB sparse file as sparse', () => {
    using fixture = openFixture(resolve)
    const file = path.join(fixture.root, 'sparse')
    writeFileSync(file, 'x')
    try {
      truncateSync(file, 8 * 1024 ** 4)
    } catch {
      // Not supported on this file system.
      return
    }
    expect(attempt(fixture, VERBS['copy away'] ?? (() => 0), 'sparse').code).toBe('done')
    expect(Bun.file(path.join(fixture.root, 'copied')).size).toBe(8 * 1024 ** 4)
  })

  test.skipIf(process.getuid?.() === 0)('(threat T15) refuses an unreadable file', () => {
    using fixture = openFixture(resolve)
    chmodSync(path.join(fixture.root, 'plain'), 0)
    expect(attempt(fixture, VERBS['read'] ?? (() => 0), 'plain').code).toBe('file_refused')
  })

  test('(threat T13) follows links inside the workspace', () => {
    using fixture = openFixture(resolve)
    symlinkSync('inside', path.join(fixture.root, 'in'))
    symlinkSync('../in/deep/../f', path.join(fixture.root, 'inside/l'))
    expect(attempt(fixture, VERBS['read'] ?? (() => 0), 'in/l').output).toBe('"harmless"')
    expect(attempt(fixture, VERBS['write through symlinks'] ?? (() => 0), 'inside/l').code).toBe('done')
    expect(attempt(fixture, VERBS['read'] ?? (() => 0), 'inside/f').output).toBe('"written"')
    expect(readdirSync(path.join(fixture.root, 'inside')).toSorted()).toEqual(['deep', 'f', 'l', 'victim'])
  })
})
