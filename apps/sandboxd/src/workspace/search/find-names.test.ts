import { expect, test } from 'bun:test'
import type { Files, Found } from '../files.ts'
import { type FindLimits, findNames } from './find-names.ts'
import { nameSearch } from './name-pattern.ts'

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

test('says that there may be more, whatever ran out', async () => {
  const paths = ['x1', 'x2', 'x3']
  expect(await find(paths, { maxResults: 3 })).toEqual([paths, false])
  expect(await find(paths, { maxResults: 2 })).toEqual([['x1', 'x2'], true])
  expect(await find(paths, { maxNodes: 3 })).toEqual([paths, false])
  expect(await find(paths, { maxNodes: 2 })).toEqual([['x1', 'x2'], true])
  expect(await find(['x/', 'x/x/', 'x/x/x'], { maxDepth: 2 })).toEqual([['x', 'x/x'], true])
  expect(await find(['x/', 'x/x'], { maxDepth: 2 })).toEqual([['x', 'x/x'], false])
})
