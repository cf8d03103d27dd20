import { expect, test } from 'bun:test'
import type { Files, Found } from '../files.ts'
import { type FindLimits, findNames, namePattern, nameSearch } from './name-search.ts'

const LIMITS: FindLimits = { maxResults: 100, maxNodes: 100, maxDepth: 10, timeMs: 1_000 }

/** A walk over paths; those that end with a slash are folders, those with `@` links to folders. */
function walkOf(paths: readonly string[]): Pick<Files, 'walk'> {
  return {
    async *walk(_, { maxNodes, maxDepth, reached }) {
      const entries = paths.map((text): Found => {
        const path = text.replace(/[/@]$/, '')
        const kind = text.endsWith('/') ? 'folder' : text.endsWith('@') ? 'link' : 'file'
        const stat = { sizeBytes: 0, mode: 0, mtimeNs: '0', etag: 'x' }
        const target = kind === 'link' ? ({ target: 'folder' } as const) : {}
        return { ...stat, ...target, kind, path, name: path.split('/').at(-1) ?? '' }
      })
      const near = entries.filter(({ path }) => path.split('/').length <= maxDepth)
      for (const entry of near.slice(0, maxNodes)) yield [entry]
      if (near.length < entries.length) reached?.('depth')
      if (near.length > maxNodes) reached?.('nodes')
    },
  }
}

async function find(paths: readonly string[], limits: Partial<FindLimits> = {}): Promise<unknown> {
  const result = await findNames(
    '.',
    nameSearch('*x*'),
    { ...LIMITS, ...limits },
    {
      files: walkOf(paths),

      signal: new AbortController().signal,
    },
  )
  return [result.found.map(({ path }) => path), result.isTruncated]
}

test('finds files and folders by their own names', async () => {
  const unfinished = `.sandwire-x${'0'.repeat(23)}.part`
  expect(await find(['x/', 'x/a', 'y/', 'y/ax', 'z@', unfinished])).toEqual([['x', 'y/ax'], false])
})

test('reports truncation for every limit', async () => {
  const paths = ['x1', 'x2', 'x3']
  expect(await find(paths, { maxResults: 3 })).toEqual([paths, false])
  expect(await find(paths, { maxResults: 2 })).toEqual([['x1', 'x2'], true])
  expect(await find(paths, { maxNodes: 3 })).toEqual([paths, false])
  expect(await find(paths, { maxNodes: 2 })).toEqual([['x1', 'x2'], true])
  expect(await find(['x/', 'x/x/', 'x/x/x'], { maxDepth: 2 })).toEqual([['x', 'x/x'], true])
  expect(await find(['x/', 'x/x'], { maxDepth: 2 })).toEqual([['x', 'x/x'], false])
})

// Expected values are those of Python 3.11's fnmatch.fnmatchcase for the lower-cased pair.
test.each([
  ['*.py', 'a.PY', true],
  ['*.py', 'a.pyc', false],
  ['test_*', 'Test_1', true],
  ['a', 'a', true],
  ['a', 'ab', false],
  ['?', '🦜', true],
  ['?', '', false],
  ['*', '', true],
  ['*', '.hidden', true],
  ['a*b*c', 'axxbxxc', true],
  ['a*b*c', 'axxbxx', false],
  ['[abc]x', 'bx', true],
  ['[!abc]x', 'bx', false],
  ['[!abc]x', 'dx', true],
  ['[a-c]', 'b', true],
  ['[a-c]', 'd', false],
  ['[c-a]', 'b', false],
  ['[]]', ']', true],
  ['[!]]', ']', false],
  ['[a', '[a', true],
  ['[', '[', true],
  ['[!', '[!', true],
  ['[]', '[]', true],
  ['[a-]', '-', true],
  ['[-a]', '-', true],
  ['[*]', '*', true],
  ['[*]', 'x', false],
  ['a.b', 'aXb', false],
  ['\\*', '\\x', true],
  ['(a|b)', 'a', false],
  ['a\nb', 'a\nb', true],
  ['*', 'a\nb', true],
  ['\udcff*', '\udcffx', true],
])('the pattern %j and the name %j: %p', (pattern, name, expected) => {
  expect(namePattern(pattern)(name)).toBe(expected)
})

test('matches a pattern with many stars in linear time', () => {
  expect(namePattern(`${'*a'.repeat(200)}b`)('a'.repeat(255))).toBe(false)
})

test('finds a text without wildcards within a name', () => {
  expect(['Makefile', 'remake', 'mike'].filter(nameSearch('MAKE'))).toEqual(['Makefile', 'remake'])
  expect(['Makefile', 'remake'].filter(nameSearch('mak*'))).toEqual(['Makefile'])
})
