import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { TreeFixture } from './base-tree.fixture.ts'

/** A seeded source, such as `Random` of the testing package. */
export interface Random {
  int(low: number, high: number): number
  pick<T>(list: readonly T[]): T
}

const NAMES = [
  'a',
  'b',
  'c',
  'd.txt',
  'e f',
  'caf\xc3\xa9',
  '\xff',
  'g\tq"',
  '.gitattributes',
  'x.o',
  '-n',
  'h\nh',
] as const
const RULES = ['*.o\n', 'b/\n', '/a\n', '!x.o\n', 'c\n'] as const
const ATTRIBUTES = ['* text eol=crlf\n', '* -diff\n', '*.txt ident\n', '* filter=x\n', '* binary\n'] as const

function nameOf(random: Random, depth: number): string {
  const segments = Array.from({ length: random.int(1, depth) }, () => random.pick(NAMES))
  return segments.join('/')
}

function contentOf(random: Random): Uint8Array {
  const kind = random.int(0, 4)
  if (kind === 0) return new Uint8Array()
  if (kind === 1) return Uint8Array.from({ length: random.int(1, 600) }, () => random.int(0, 255))
  const lines = Array.from(
    { length: random.int(1, 30) },
    () => `line ${random.int(0, 9)}${random.int(0, 5) === 0 ? '\r' : ''}`,
  )
  return Buffer.from(lines.join('\n') + (random.int(0, 3) === 0 ? '' : '\n'))
}

/** One random change below a folder; what is in its way is removed. */
function change(fixture: TreeFixture, folder: string, random: Random): void {
  const name = `${folder}/${nameOf(random, 3)}`
  const file = fixture.at(name)
  makeParentFolders(fixture, name)
  switch (random.int(0, 8)) {
    case 0:
      return rmSync(file, { recursive: true, force: true })
    case 1:
      rmSync(file, { recursive: true, force: true })
      return symlinkSync(nameOf(random, 2), file)
    case 2:
      if (isFile(file)) chmodSync(file, random.int(0, 1) === 0 ? 0o755 : 0o600)
      return
    case 3: {
      const to = `${folder}/${nameOf(random, 2)}`
      if (!exists(file) || to === name || to.startsWith(`${name}/`) || name.startsWith(`${to}/`)) return
      makeParentFolders(fixture, to)
      rmSync(fixture.at(to), { recursive: true, force: true })
      if (exists(file)) renameSync(file, fixture.at(to))
      return
    }
    case 4:
      rmSync(file, { recursive: true, force: true })
      mkdirSync(file)
      if (random.int(0, 1) === 0) mkdirSync(fixture.at(`${name}/.git`))
      return
    case 5:
      return replace(fixture, `${folder}/.gitignore`, Buffer.from(random.pick(RULES)))
    case 6:
      return replace(fixture, `${folder}/.gitattributes`, Buffer.from(random.pick(ATTRIBUTES)))
    default:
      return replace(fixture, name, contentOf(random))
  }
}

function replace(fixture: TreeFixture, name: string, content: Uint8Array): void {
  makeParentFolders(fixture, name)
  rmSync(fixture.at(name), { recursive: true, force: true })
  writeFileSync(fixture.at(name), content)
}

function exists(file: Buffer): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined
}

function isFile(file: Buffer): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isFile() === true
}

/** Makes every part of a path but the last a folder. */
function makeParentFolders(fixture: TreeFixture, name: string): void {
  const segments = name.split('/')
  for (let count = 1; count < segments.length; count += 1) {
    const folder = fixture.at(segments.slice(0, count).join('/'))
    if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) continue
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
  }
}

/**
 * Compares `trees` random trees before and after random changes, each in a folder of one workspace. Throws unless the patch
 * makes of the base the very files that are there, but for ignored ones.
 */
export async function compareRandomTrees(random: Random, trees: number): Promise<void> {
  using fixture = new TreeFixture()
  const folders = Array.from({ length: trees }, (_, index) => `tree-${index}`)
  if (random.int(0, 1) === 0) fixture.git('init', '-q')
  for (const folder of folders)
    for (let count = random.int(0, 15); count > 0; count -= 1) change(fixture, folder, random)
  const base = await fixture.recordBase()
  for (const folder of folders)
    for (let count = random.int(0, 15); count > 0; count -= 1) change(fixture, folder, random)
  const facts = await fixture.makeDiff(base)
  const applied = fixture.applied(base)
  if (applied.treeHash !== facts.treeHash)
    throw new Error(`The patch makes ${applied.treeHash}, not ${facts.treeHash}`)
  const walked = fixture.walk()
  for (const [name, entry] of applied.entries)
    if (walked.get(name) !== entry) throw new Error(`"${name}" is ${entry}, not ${walked.get(name)}`)
  const ignored = fixture.ignored([...walked.keys()].filter((name) => !applied.entries.has(name)))
  for (const name of walked.keys())
    if (!applied.entries.has(name) && !ignored.has(name)) throw new Error(`"${name}" is missing`)
}
