import {
  chmodSync,
  closeSync,
  copyFileSync,
  fchmodSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import type { BaseTree } from '@sandwire/agent'
import type { AsUser } from '../../processes/run-as.ts'
import type { RunTool } from '../../workspace/tool.ts'
import { readChunks } from '../file-chunks.ts'
import { joinNames, splitNames } from './byte-lists.ts'
import { canBeInTree, listFiles } from './list-files.ts'
import { git, PRIVATE_ATTRIBUTES, PRIVATE_CONFIG, type PrivateGit, runProgram } from './private-git.ts'

/** Where a run's base is, and how programs are run as the user. */
export interface TreeContext {
  readonly runTool: RunTool
  readonly asUser: AsUser
  /** Descriptor of the workspace. */
  readonly workspace: number
  /** A folder of sandboxd that the user can enter but not list or write. */
  readonly folder: string
  /** Parent of the folder that git writes to; undefined: `folder`. */
  readonly scratchParent?: string
}

interface Submodule {
  readonly path: string
  readonly commit: string
}

/** Stored beside the objects. */
export interface BaseRecord extends BaseTree {
  /** Names with one character per byte. */
  readonly submodules: readonly (Submodule & { readonly state: string })[]
}

export const baseFolder = (folder: string): string => path.join(folder, 'base')

/** A folder that belongs to the user, for what git writes. */
export function openScratch(context: TreeContext): Disposable & { readonly path: string } {
  const { folder, scratchParent, asUser } = context
  const parent = mkdtempSync(path.join(scratchParent ?? folder, 'scratch-'))
  chmodSync(parent, 0o777)
  const scratch = path.join(parent, 'user')
  asUser(() => {
    mkdirSync(scratch, { mode: 0o755 })
    for (const name of [
      'git',
      'git/info',
      'git/objects',
      'git/refs',
      'objects',
      'objects/info',
      'objects/pack',
    ])
      mkdirSync(path.join(scratch, name))
    writeFileSync(path.join(scratch, 'git/HEAD'), 'ref: refs/heads/none\n')
    writeFileSync(path.join(scratch, 'git/config'), PRIVATE_CONFIG)
    writeFileSync(path.join(scratch, 'git/info/attributes'), PRIVATE_ATTRIBUTES)
  })
  chmodSync(parent, 0o711)
  return {
    path: scratch,
    [Symbol.dispose]: () => {
      // The user's folders are removed with the user's permissions, its parent with ours.
      chmodSync(parent, 0o777)
      asUser(() => rmSync(scratch, { recursive: true, force: true }))
      rmSync(parent, { recursive: true, force: true })
    },
  }
}

/** Git on the workspace with the git directory, index and new objects in a scratch folder. */
export function privateGitIn(
  { runTool, workspace }: TreeContext,
  scratch: string,
  alternates?: string,
): PrivateGit {
  return {
    runTool,
    workspace,
    gitDir: path.join(scratch, 'git'),
    index: path.join(scratch, 'index'),
    objects: path.join(scratch, 'objects'),
    ...(alternates === undefined ? {} : { alternates }),
  }
}

/** Records the files of the workspace, before the agent starts. */
export async function recordBase(context: TreeContext): Promise<BaseRecord> {
  using scratch = openScratch(context)
  const { runTool, workspace, folder } = context
  const plan = privateGitIn(context, scratch.path)
  const repository = await readRepository(context)
  const listed = await listFiles(runTool, workspace)
  const submodules = repository.submodules
  const inside = within(submodules.map((submodule) => submodule.path))
  const files = listed.files.filter((file) => !inside(file))
  const tracked = new Set(repository.tracked)
  const ignored = await findIgnored(
    plan,
    files.filter((file) => !tracked.has(file)),
  )
  await git(plan, ['update-index', '-z', '--add', '--stdin'], {
    stdin: joinNames(files.filter((file) => !ignored.has(file) && canBeInTree(listed, file))),
  })
  if (submodules.length > 0) await addSubmodules(plan, submodules)
  const treeHash = (await git(plan, ['write-tree'])).toString().trim()
  await git(plan, ['pack-objects', '-q', '--revs', '--window=0', path.join(scratch.path, 'pack')], {
    stdin: Buffer.from(`${treeHash}\n`),
  })
  await keep(context, scratch.path)
  const record: BaseRecord = {
    treeHash,
    commit: repository.commit,
    isCommit: treeHash === repository.tree,
    submodules: await Promise.all(
      submodules.map(async (submodule) => ({
        ...submodule,
        state: await submoduleState(context, submodule.path),
      })),
    ),
  }
  writeFileSync(path.join(baseFolder(folder), 'record.json'), JSON.stringify(record), { mode: 0o600 })
  return record
}

export function readBase(folder: string): BaseRecord | undefined {
  try {
    return JSON.parse(readFileSync(path.join(baseFolder(folder), 'record.json'), 'utf8')) as BaseRecord
  } catch {
    // The run ended before its base was recorded.
    return undefined
  }
}

/** Copies objects and index, so that they belong to sandboxd. The time of the index tells git which files may have changed since. */
async function keep({ asUser, folder }: TreeContext, scratch: string): Promise<void> {
  const base = baseFolder(folder)
  rmSync(base, { recursive: true, force: true })
  const packs = path.join(base, 'objects', 'pack')
  mkdirSync(packs, { recursive: true })
  const names = asUser(() => readdirSync(scratch)).filter((entry) => entry.startsWith('pack-'))
  for (const name of names) await copyFromUser(asUser, path.join(scratch, name), path.join(packs, name))
  const index = path.join(scratch, 'index')
  await copyFromUser(asUser, index, path.join(base, 'index'))
  setIndexTime(path.join(base, 'index'), asUser(() => statSync(index)).mtimeMs)
  for (const name of [base, path.join(base, 'objects'), packs]) chmodSync(name, 0o755)
}

/** Copies a file that only the user may be able to read. */
async function copyFromUser(asUser: AsUser, from: string, to: string): Promise<void> {
  const source = asUser(() => openSync(from, 'r'))
  const target = openSync(to, 'w', 0o644)
  try {
    for await (const chunk of readChunks(source)) writeSync(target, chunk)
    fchmodSync(target, 0o644)
  } finally {
    closeSync(target)
    closeSync(source)
  }
}

/** Copies the base's index for git to change. Called as the user. */
export function copyIndex(from: string, to: string): void {
  copyFileSync(from, to)
  setIndexTime(to, statSync(from).mtimeMs)
}

/**
 * Sets the time of an index in whole seconds, rounded down. Git reads a file again when its time is not older than the index's,
 * because it may have changed in the moment in which the index was written; an earlier time is on the safe side.
 */
function setIndexTime(file: string, mtimeMs: number): void {
  const seconds = Math.floor(mtimeMs / 1000)
  utimesSync(file, seconds, seconds)
}

/** Output of git on the repository at the root of the workspace; undefined when it fails, for example without one. */
export async function askRepository(
  { runTool, workspace }: TreeContext,
  args: readonly string[],
): Promise<Buffer | undefined> {
  const settings = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', '-c', 'safe.directory=*']
  const env = { GIT_DIR: '.git', GIT_WORK_TREE: '.', GIT_OPTIONAL_LOCKS: '0', GIT_ALLOW_PROTOCOL: 'none' }
  const { stdout, code } = await runProgram(runTool, workspace, {
    argv: ['git', ...settings, ...args],
    env,
    allowed: [0, 1, 128],
  })
  return code === 0 ? stdout : undefined
}

/** The commit or tree of a name in the repository of the workspace; null when there is none. */
export async function hashOf(context: TreeContext, name: string): Promise<string | null> {
  const output = await askRepository(context, ['rev-parse', '--verify', '--quiet', name])
  const text = output?.toString().trim() ?? ''
  return /^[0-9a-f]{40,64}$/.test(text) ? text : null
}

/** The repository at the root of the workspace, as it is before the run; empty without one. */
export async function readRepository(context: TreeContext): Promise<{
  readonly tracked: readonly string[]
  readonly submodules: readonly Submodule[]
  readonly commit: string | null
  readonly tree: string | null
}> {
  const listed = await askRepository(context, ['ls-files', '-z', '--stage'])
  const entries = splitNames(listed ?? Buffer.alloc(0))
  const parsed = entries.flatMap((entry) => {
    const match = /^(\d{6}) ([0-9a-f]+) \d\t([^]+)$/.exec(entry)
    return match?.[3] === undefined ? [] : [{ mode: match[1], hash: match[2] ?? '', path: match[3] }]
  })
  return {
    tracked: parsed.filter(({ mode }) => mode !== '160000').map((entry) => entry.path),
    submodules: parsed
      .filter(({ mode, hash }) => mode === '160000' && hash.length === 40)
      .map((entry) => ({ path: entry.path, commit: entry.hash })),
    commit: await hashOf(context, 'HEAD'),
    tree: await hashOf(context, 'HEAD^{tree}'),
  }
}

async function addSubmodules(plan: PrivateGit, submodules: readonly Submodule[]): Promise<void> {
  const lines = submodules.map(({ commit, path: name }) => `160000 ${commit} 0\t${name}\0`)
  await git(plan, ['update-index', '-z', '--index-info'], { stdin: Buffer.from(lines.join(''), 'latin1') })
}

/** Names, sizes and times within a submodule: another value means that something in it changed. */
export async function submoduleState({ runTool, workspace }: TreeContext, name: string): Promise<string> {
  const format = '%P %y %m %s %T@ %l\\0'
  const { stdout, code } = await runProgram(runTool, workspace, {
    argv: [
      'find',
      `./${Buffer.from(name, 'latin1').toString()}`,
      '-name',
      '.git',
      '-prune',
      '-o',
      '-type',
      'd',
      '-o',
      '-printf',
      format,
    ],
    allowed: [0, 1],
  })
  const entries = splitNames(stdout).sort((a, b) => (a < b ? -1 : 1))
  return new Bun.CryptoHasher('sha256').update(`${code}\n${entries.join('\n')}`).digest('hex')
}

/** Which of these names the ignore rules of a folder hide; by default of the workspace. */
export async function findIgnored(
  plan: PrivateGit,
  names: readonly string[],
  folder = '.',
): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set()
  // Code 1: none is ignored.
  const output = await git(plan, ['-C', folder, 'check-ignore', '-z', '--stdin', '--no-index'], {
    // The prefix keeps names such as `:(glob)` from being patterns.
    stdin: joinNames(names.map((name) => `./${name}`)),
    allowed: [0, 1],
  })
  return new Set(splitNames(output).map((name) => name.slice(2)))
}

/** Returns a predicate: a name is one of these folders or below one. */
export function within(folders: readonly string[]): (name: string) => boolean {
  const set = new Set(folders)
  if (set.size === 0) return () => false
  return (name) => {
    for (let end = name.length; end > 0; end = name.lastIndexOf('/', end - 1))
      if (set.has(name.slice(0, end))) return true
    return false
  }
}
