import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TarBuffer } from '@sandwire/tar'
import { openControl } from '../competitors.ts'
import { findSpritesProblem, openSpritesHost } from '../peers/sprites.ts'
import {
  expectGood,
  type FilesPlace,
  findIsolationProblem,
  openControlledFiles,
  openLocalFiles,
  openSandboxdFiles,
} from '../peers/workspace.ts'
import { type Absent, atMost, type Competitor, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

/** Entries of the folder, a large one for a project. */
const NAMES = 1_000
/** Sequential requests per measurement. */
const TIMES = 200

const nameOf = (at: number): string => `file-${String(at).padStart(4, '0')}.ts`

async function repeat(once: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let left = TIMES; left > 0; left -= 1) {
    const startMs = performance.now()
    await once()
    times.push(performance.now() - startMs)
  }
  return quantile(times, 0.95)
}

function openTree(name: string, place: FilesPlace): Competitor {
  const list = async (): Promise<void> => {
    const body: unknown = await (await expectGood(place.fetch('compat/tree?path=src'))).json()
    const entries: unknown = Reflect.get(Object(body), 'entries')
    if (!Array.isArray(entries) || entries.length !== NAMES) throw new Error('A name is missing')
  }
  return {
    name,
    side: 'ours',
    measure: () => repeat(list),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  }
}

function pack(): Uint8Array<ArrayBuffer> {
  const archive = new TarBuffer()
  for (let at = 0; at < NAMES; at += 1) {
    const entry = {
      path: `src/${nameOf(at)}`,
      kind: 'file',
      sizeBytes: 0,
      mode: 0o644,
      mtimeNs: '0',
    } as const
    archive.entry(entry)
  }
  archive.end()
  return archive.take()
}

async function makeFolder(directory: string): Promise<string> {
  const workspace = join(directory, 'tree')
  const folder = join(workspace, 'src')
  await mkdir(folder, { recursive: true })
  for (let at = 0; at < NAMES; at += 1) await writeFile(join(folder, nameOf(at)), '')
  return workspace
}

async function openIsolated(workspace: string): Promise<(Competitor | Absent)[]> {
  const problem = findIsolationProblem()
  if (problem !== undefined) return [{ name: 'sandwire through control', absent: problem }]
  const sandbox = await openControlledFiles()
  await expectGood(sandbox.fetch('archive?path=.', { method: 'PUT', body: pack() }))
  return [
    openTree('sandwire in local mode', await openLocalFiles(workspace)),
    openTree('sandwire through control', sandbox),
  ]
}

async function openSprite(): Promise<Competitor | Absent> {
  const name = 'sandwire with sprites'
  const problem = findSpritesProblem()
  if (problem !== undefined) return { name, absent: problem }
  const sprite = await openSpritesHost()
  await expectGood(sprite.fetch('archive?path=.', { method: 'PUT', body: pack() }))
  return openTree(name, sprite)
}

export const tree: Row = {
  id: 'tree',
  title: '`/api/tree` of 1,000 names, p95',
  unit: 'ms',
  digits: 2,
  about:
    'p95 of 200 listings one after the other; `readdir` asks for every size as well, as the listing has it.',
  targets: [
    atMost('sandwire through control', 'sandwire in local mode', 1.5),
    atMost('sandwire through control', 'sandwire', 3),
    atMost('sandwire with sprites', 'sandwire in local mode', 3),
  ],
  open: async ({ scratch }) => {
    const workspace = await makeFolder(scratch.directory)
    const folder = join(workspace, 'src')
    return [
      openControl('readdir', () =>
        repeat(async () => Promise.all((await readdir(folder)).map((name) => stat(join(folder, name))))),
      ),
      openTree('sandwire', await openSandboxdFiles(workspace)),
      ...(await openIsolated(workspace)),
      await openSprite(),
    ]
  },
}
