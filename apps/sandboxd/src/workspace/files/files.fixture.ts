import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
  closeSync,
  existsSync,
  lstatSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Resolve, resolveStepwise, resolveWithOpenat2 } from '../beneath/resolve.ts'
import { Root } from '../beneath/root.ts'
import type { NewFile } from '../files.ts'
import { TRANSFER_VERBS } from '../transfer/verbs.fixture.ts'
import { copy } from './copy.ts'
import type { FileContext, Job } from './context.ts'
import { list, open, openFolder, stat } from './listing.ts'
import { makeFolder, PendingFiles } from './write.ts'
import { remove } from './remove.ts'
import { rename } from './rename.ts'
import { walk } from './walk.ts'

/** Both path resolvers, which must be equally safe. */
export const RESOLVERS: readonly (readonly [string, Resolve])[] = [
  ['the kernel', resolveWithOpenat2],
  ['hand', resolveStepwise],
]

/** Content of files outside, of a length that no file inside has; one of the files is named so. */
const SECRET = 'SECRET'.repeat(1111)

/** True when a result discloses something of the files outside. */
export function containsSecret(output: string): boolean {
  return output.includes('SECRET') || output.includes(`"sizeBytes":${SECRET.length}`)
}

/** Thousands of fixtures are created, so not on a shared disk. */
export const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** A workspace, with files beside it that must stay out of reach. */
export interface Fixture extends Disposable {
  readonly root: string
  readonly outside: string
  readonly context: FileContext
}

/** Creates a workspace with a folder of secrets beside it, one of which has the workspace's name as a prefix. */
export function openFixture(resolve: Resolve): Fixture {
  const folder = mkdtempSync(path.join(MEMORY, 'sandwire-fixture-'))
  const [root, outside, sibling] = ['workspace', 'outside', 'workspace-evil'].map((name) =>
    path.join(folder, name),
  )
  if (root === undefined || outside === undefined || sibling === undefined) throw new Error('Cannot be')
  for (const each of [outside, sibling]) {
    mkdirSync(path.join(each, 'deep'), { recursive: true })
    for (const name of ['f', 'victim', 'deep/f', 'SECRET']) writeFileSync(path.join(each, name), SECRET)
  }
  mkdirSync(path.join(root, 'inside/deep'), { recursive: true })
  for (const name of ['plain', 'inside/f', 'inside/victim', 'inside/deep/f'])
    writeFileSync(path.join(root, name), 'harmless')
  const opened = new Root(root, resolve)
  return {
    root,
    outside: folder,
    context: { root: opened, umask: 0o022, now: () => performance.now() },
    [Symbol.dispose]: () => {
      opened[Symbol.dispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Creates links that lead outside, or nowhere. */
export function plantLinks({ root, outside }: Fixture, fd: number): readonly string[] {
  const links: Record<string, string> = {
    absolute: path.join(outside, 'outside/f'),
    relative: '../outside/f',
    up: '..',
    folder: '../outside',
    sibling: '../workspace-evil',
    loop: 'loop',
    'proc-root': '/proc/self/root',
    'proc-fd': `/proc/self/fd/${fd}`,
    'proc-cwd': '/proc/self/cwd',
    'absolute-inside': path.join(root, 'plain'),
    'through-inside': 'inside/../../outside/f',
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, path.join(root, name))
  symlinkSync('plain', path.join(root, 'chain0'))
  for (let at = 1; at <= 41; at += 1) symlinkSync(`chain${at - 1}`, path.join(root, `chain${at}`))
  return [...Object.keys(links), 'chain41']
}

/** Every file outside the workspace with its content and mtime. */
export function lookOutside({ outside, root }: Fixture): readonly string[] {
  const look = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const each = path.join(folder, entry.name)
      if (each === root) return []
      const { mode, mtimeNs, ctimeNs } = lstatSync(each, { bigint: true })
      const content = entry.isFile() ? Bun.hash(readFileSync(each)).toString() : ''
      const line = `${each} ${mode} ${mtimeNs} ${ctimeNs} ${content}`
      return entry.isDirectory() ? [line, ...look(each)] : [line]
    })
  return look(outside)
}

/** True when a secret was copied into the workspace. */
export function hasSecretInside({ root }: Fixture): boolean {
  // Bun's recursive `readdir` follows links (1.4).
  const look = (folder: string): boolean =>
    readdirSync(folder, { withFileTypes: true }).some((entry) => {
      const each = path.join(folder, entry.name)
      return entry.isDirectory() ? look(each) : entry.isFile() && isSecret(each)
    })
  return look(root)
}

function isSecret(file: string): boolean {
  const { size } = lstatSync(file)
  return size < 1024 * 1024 && readFileSync(file).includes('SECRET')
}

/** Runs a job to its end and returns its parts and result. */
export function finish<Result, Part>(
  job: Job<Result, Part>,
): { readonly result: Result; readonly parts: Part[] } {
  const parts: Part[] = []
  for (;;) {
    const { done, value } = job.next()
    if (done === true) return { result: value, parts }
    if (value !== undefined) parts.push(value)
  }
}

function readAll(context: FileContext, at: string): string {
  const { fd } = open(context, at)
  const buffer = Buffer.alloc(SECRET.length + 10)
  try {
    return buffer.toString('latin1', 0, readSync(fd, buffer))
  } finally {
    closeSync(fd)
  }
}

function writeText(context: FileContext, at: string, file: NewFile): unknown {
  const pending = new PendingFiles(context)
  const { fd, id } = pending.create(1, at, file)
  try {
    writeSync(fd, 'written')
    const { folder, stat: committed } = pending.commit(id)
    if (folder >= 0) closeSync(folder)
    return committed
  } finally {
    closeSync(fd)
  }
}

const LIMITS = { maxEntries: 100, timeMs: 10_000 }

/** Every operation on a path; each returns what it discloses. */
export const VERBS: Readonly<Record<string, (context: FileContext, at: string) => unknown>> = {
  stat: (context, at) => stat(context, at, false),
  'stat through symlinks': (context, at) => stat(context, at, true),
  list: (context, at) => finish(list(context, at, LIMITS)),
  read: readAll,
  'open folder': (context, at) => {
    const fd = openFolder(context, at)
    const seen = readdirSync(`/proc/self/fd/${fd}`)
    closeSync(fd)
    return seen
  },
  write: (context, at) => writeText(context, at, {}),
  'write through symlinks': (context, at) => writeText(context, at, { followsLink: true }),
  'write with folders': (context, at) => writeText(context, at, { makesParents: true, followsLink: true }),
  'make folder': (context, at) => makeFolder(context, at, { makesParents: false }),
  'make folders': (context, at) => makeFolder(context, at, { makesParents: true }),
  remove: (context, at) => finish(remove(context, at, { recursive: false })),
  'remove all': (context, at) => finish(remove(context, at, { recursive: true })),
  'move away': (context, at) => finish(rename(context, at, 'moved', { replaces: true })),
  'move there': (context, at) => finish(rename(context, 'plain', at, { replaces: false })),
  'move over': (context, at) => finish(rename(context, 'plain', at, { replaces: true })),
  'copy away': (context, at) => finish(copy(context, at, 'copied', { replaces: true })),
  'copy there': (context, at) => finish(copy(context, 'plain', at, { replaces: false })),
  'copy over': (context, at) => finish(copy(context, 'inside', at, { replaces: true })),
  ...TRANSFER_VERBS,
  walk: (context, at) => finish(walk(context, at, { maxNodes: 1000, maxDepth: 20, timeMs: 10_000 })),
}
