import { createHash } from 'node:crypto'
import { closeSync, fdatasyncSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import type { ChangedFile, DiffFacts } from '@sandwire/agent'
import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import {
  baseFolder,
  type BaseRecord,
  copyIndex,
  findIgnored,
  openScratch,
  privateGitIn,
  submoduleState,
  type TreeContext,
  within,
} from './base-tree.ts'
import { readChunks } from '../file-chunks.ts'
import { joinNames, splitNames } from './byte-lists.ts'
import { canBeInTree, listFiles } from './list-files.ts'
import { makePack } from './make-pack.ts'
import { git, type PrivateGit, runGit, runProgram } from './private-git.ts'

/** Names in each list of the result. */
const MAX_NAMES = 1_000
const MAX_PATCH_BYTES = 512 * 1024 * 1024

/** Options of every comparison. */
const DIFF = ['diff-tree', '-r', '--no-ext-diff', '--no-textconv', '--no-color', '--full-index'] as const

interface Snapshot {
  readonly treeHash: string
  readonly ignored: readonly string[]
  readonly submodules: readonly string[]
  readonly unreadable: readonly string[]
  readonly withheld: readonly string[]
}

export interface DiffFiles {
  readonly patchFile: string
  readonly packFile: string
  readonly secrets: readonly string[]
}

/** Compares the workspace with the base, and writes the patch to a file. Called when no process of the run is left. */
export async function makeDiff(context: TreeContext, base: BaseRecord, files: DiffFiles): Promise<DiffFacts> {
  using scratch = openScratch(context)
  const { folder, asUser } = context
  const baseIndex = path.join(baseFolder(folder), 'index')
  const plan = privateGitIn(context, scratch.path, path.join(baseFolder(folder), 'objects'))
  asUser(() => copyIndex(baseIndex, plan.index))
  return await compareWorkspace({ context, plan, base, baseIndex, scratch: scratch.path, ...files })
}

export interface Comparison extends DiffFiles {
  readonly context: TreeContext
  /** Its index begins as that of the base. */
  readonly plan: PrivateGit
  readonly base: Pick<BaseRecord, 'treeHash' | 'isCommit' | 'submodules'>
  readonly baseIndex: string
  readonly scratch: string
}

/** Compares the workspace with a tree; writes the patch, and for a commit the pack. */
export async function compareWorkspace(comparison: Comparison): Promise<DiffFacts> {
  const { context, plan, base, scratch, patchFile, packFile, secrets } = comparison
  const snapshot = await takeSnapshot(comparison)
  const range = [base.treeHash, snapshot.treeHash]
  const files = parseChanges(
    await git(plan, [...DIFF, '-M', '-z', '--raw', ...range]),
    await git(plan, [...DIFF, '-M', '-z', '--numstat', ...range]),
  )
  const between = { scratch, from: base.treeHash, to: snapshot.treeHash }
  const made = await makePatch(plan, context, between)
  const patch = await copyPatch(context, { made, patchFile, secrets })
  const packBytes = base.isCommit ? await makePack(plan, context, { ...between, packFile }) : null
  return {
    ...patch,
    packBytes,
    treeHash: snapshot.treeHash,
    files,
    ignored: toTexts(snapshot.ignored),
    submodules: toTexts(snapshot.submodules),
    unreadable: toTexts(snapshot.unreadable),
    withheld: toTexts(snapshot.withheld),
  }
}

/** Brings the index from the base to what the workspace has now. */
async function takeSnapshot({
  context,
  plan,
  base,
  baseIndex,
  scratch,
  secrets,
}: Comparison): Promise<Snapshot> {
  const { runTool, workspace } = context
  const listed = await listFiles(runTool, workspace)
  const before = new Set(splitNames(await git(plan, ['ls-files', '-z'])))
  const submodules = await changedSubmodules(context, base)
  const isInSubmodule = within(base.submodules.map((submodule) => submodule.path))
  const isUnreadable = within(listed.unreadable)
  // A file in the place of a submodule replaces it; what is inside one is not part of this tree.
  const files = listed.files.filter((file) => before.has(file) || !isInSubmodule(file))
  const ignored = await findIgnored(
    plan,
    files.filter((file) => !before.has(file)),
  )
  const wanted = files.filter((file) => !ignored.has(file))
  const { clean, withheld } = await withholdSecrets({ context, plan, wanted, before, secrets })
  const present = new Set(wanted)
  const gone = [...before].filter((file) => !present.has(file) && !isUnreadable(file) && !isInSubmodule(file))
  await git(plan, ['update-index', '-z', '--force-remove', '--stdin'], {
    stdin: joinNames([...gone, ...submodules.removed]),
  })
  await git(plan, ['update-index', '-z', '--add', '--replace', '--stdin'], {
    stdin: joinNames(clean.filter((file) => canBeInTree(listed, file))),
  })
  return {
    treeHash: (await git(plan, ['write-tree'])).toString().trim(),
    ignored: await hiddenByNewRules({ context, plan, baseIndex, ignored, before, scratch }),
    submodules: submodules.changed,
    unreadable: [
      ...listed.unreadable,
      ...listed.special,
      ...clean.filter((file) => !canBeInTree(listed, file)),
    ],
    withheld,
  }
}

async function changedSubmodules(
  context: TreeContext,
  { submodules }: Pick<BaseRecord, 'submodules'>,
): Promise<{ readonly changed: readonly string[]; readonly removed: readonly string[] }> {
  const states = await Promise.all(
    submodules.map(async (submodule) => ({
      name: submodule.path,
      isChanged: (await submoduleState(context, submodule.path)) !== submodule.state,
      isThere: await isFolder(context, submodule.path),
    })),
  )
  return {
    changed: states.filter(({ isChanged }) => isChanged).map(({ name }) => name),
    removed: states.filter(({ isThere }) => !isThere).map(({ name }) => name),
  }
}

async function isFolder({ runTool, workspace }: TreeContext, name: string): Promise<boolean> {
  const file = `./${Buffer.from(name, 'latin1').toString()}`
  const { stdout } = await runProgram(runTool, workspace, {
    argv: ['find', file, '-maxdepth', '0', '-type', 'd', '-printf', 'd'],
    allowed: [0, 1],
  })
  return stdout.length > 0
}

/** Leaves out changed files that contain a secret of the run: they stay as they were in the base. */
async function withholdSecrets(parts: {
  readonly context: TreeContext
  readonly plan: PrivateGit
  readonly wanted: readonly string[]
  readonly before: ReadonlySet<string>
  readonly secrets: readonly string[]
}): Promise<{ readonly clean: readonly string[]; readonly withheld: readonly string[] }> {
  const { context, plan, wanted, before, secrets } = parts
  if (secrets.length === 0) return { clean: wanted, withheld: [] }
  // Files that git considers changed, and new ones.
  const changed = new Set(splitNames(await git(plan, ['diff-files', '-z', '--name-only'])))
  const candidates = wanted.filter((file) => changed.has(file) || !before.has(file))
  if (candidates.length === 0) return { clean: wanted, withheld: [] }
  const patterns = secrets.flatMap((secret) => ['-e', secret])
  const { stdout } = await runProgram(context.runTool, context.workspace, {
    argv: ['xargs', '-0', '-r', 'grep', '-lZaFs', '--devices=skip', ...patterns, '--'],
    stdin: joinNames(candidates.map((file) => `./${file}`)),
    // 123: a call of grep found nothing.
    allowed: [0, 123],
  })
  const withheld = new Set(splitNames(stdout).map((file) => file.slice(2)))
  return { clean: wanted.filter((file) => !withheld.has(file)), withheld: [...withheld] }
}

/** New files that the rules of the base would not have hidden. */
async function hiddenByNewRules(parts: {
  readonly context: TreeContext
  readonly plan: PrivateGit
  readonly baseIndex: string
  readonly ignored: ReadonlySet<string>
  readonly before: ReadonlySet<string>
  readonly scratch: string
}): Promise<readonly string[]> {
  const { context, plan, baseIndex: index, ignored, before, scratch } = parts
  if (ignored.size === 0) return []
  const folder = path.join(scratch, 'rules')
  context.asUser(() => mkdirSync(folder))
  const rules = [...before].filter((file) => file === '.gitignore' || file.endsWith('/.gitignore'))
  const args = ['checkout-index', '-z', '-q', '-f', `--prefix=${folder}/`, '--stdin'] as const
  await git({ ...plan, index }, args, { stdin: joinNames(rules) })
  const old = await findIgnored(plan, [...ignored], folder)
  return [...ignored].filter((file) => !old.has(file))
}

/** Reads the raw and the numstat output of the same comparison, which list the same files in the same order. */
function parseChanges(raw: Buffer, numstat: Buffer): readonly ChangedFile[] {
  const counts = parseCounts(numstat)
  const tokens = splitNames(raw)
  const files: ChangedFile[] = []
  for (let at = 0; at < tokens.length;) {
    const status = /^:\d{6} \d{6} [0-9a-f]+ [0-9a-f]+ ([A-Z])/.exec(tokens[at] ?? '')?.[1] ?? ''
    const isRename = status === 'R' || status === 'C'
    const from = tokens[at + 1] ?? ''
    const name = isRename ? (tokens[at + 2] ?? '') : from
    at += isRename ? 3 : 2
    const count = counts.get(name) ?? { added: null, removed: null }
    const action = status === 'A' ? 'create' : status === 'D' ? 'delete' : isRename ? 'rename' : 'modify'
    files.push({ path: toText(name), action, ...(isRename ? { from: toText(from) } : {}), ...count })
  }
  return files
}

function parseCounts(
  numstat: Buffer,
): ReadonlyMap<string, { readonly added: number | null; readonly removed: number | null }> {
  const tokens = splitNames(numstat)
  const counts = new Map<string, { readonly added: number | null; readonly removed: number | null }>()
  for (let at = 0; at < tokens.length; at += 1) {
    const [added = '', removed = '', name = ''] = (tokens[at] ?? '').split('\t')
    // The name of a rename is empty; old and new name follow.
    const file =
      name === '' ? (tokens[(at += 2)] ?? '') : (tokens[at] ?? '').slice(added.length + removed.length + 2)
    counts.set(file, { added: toCount(added), removed: toCount(removed) })
  }
  return counts
}

function toCount(text: string): number | null {
  return text === '-' ? null : Number(text)
}

/**
 * Makes a patch, and applies it to the base to prove that it gives the tree. Git cannot apply every patch that it makes: it does
 * not see that a renamed symlink is no longer in the way of a folder. Such a patch is made without renames.
 */
async function makePatch(
  plan: PrivateGit,
  { asUser }: TreeContext,
  { scratch, from, to }: { readonly scratch: string; readonly from: string; readonly to: string },
): Promise<string> {
  const patch = path.join(scratch, 'patch')
  const prefixes = ['--src-prefix=a/', '--dst-prefix=b/']
  const applied = { ...plan, index: path.join(scratch, 'applied') }
  for (const renames of ['-M', '--no-renames']) {
    await git(plan, [...DIFF, renames, '-p', '--binary', ...prefixes, `--output=${patch}`, from, to])
    // Git refuses an empty patch.
    const isEmpty = asUser(() => statSync(patch)).size === 0
    if ((isEmpty ? from : await applyPatch(applied, patch, from)) === to) return patch
  }
  throw new SandwireError('git_failed', 'Cannot return the diff: git does not reproduce the files from it')
}

/** The tree that a patch makes of another; undefined when it does not apply. */
async function applyPatch(plan: PrivateGit, patch: string, from: string): Promise<string | undefined> {
  await git(plan, ['read-tree', from])
  const args = ['apply', '--cached', '--binary', '--whitespace=nowarn', patch] as const
  const { code } = await runGit(plan, args, { allowed: [0, 1, 128] })
  return code === 0 ? (await git(plan, ['write-tree'])).toString().trim() : undefined
}

/** Copies the patch to a file of sandboxd; throws when it contains a secret, for example in a file name or the target of a link. */
async function copyPatch(
  { asUser }: TreeContext,
  {
    made,
    patchFile,
    secrets,
  }: { readonly made: string; readonly patchFile: string; readonly secrets: readonly string[] },
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const source = asUser(() => openSync(made, 'r'))
  const file = openSync(patchFile, 'w', 0o600)
  try {
    const hash = createHash('sha256')
    const finder = new SecretFinder(secrets)
    let bytes = 0
    for await (const piece of readChunks(source)) {
      bytes += piece.byteLength
      if (bytes > MAX_PATCH_BYTES)
        throw new SandwireError('file_too_large', 'Cannot return the diff: it is too large')
      if (finder.isFoundIn(piece))
        throw new SandwireError(
          'git_failed',
          'Cannot return the diff: a name in it contains a secret of the run',
        )
      hash.update(piece)
      writeSync(file, piece)
    }
    fdatasyncSync(file)
    return { bytes, sha256: hash.digest('hex') }
  } finally {
    closeSync(file)
    closeSync(source)
  }
}

/** Finds secrets in bytes that come in pieces. */
class SecretFinder {
  readonly #secrets: readonly Buffer[]
  readonly #overlap: number
  #tail = Buffer.alloc(0)

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.map((secret) => Buffer.from(secret))
    this.#overlap = Math.max(1, ...this.#secrets.map((secret) => secret.byteLength)) - 1
  }

  isFoundIn(chunk: Uint8Array): boolean {
    const bytes = Buffer.concat([this.#tail, chunk])
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, bytes.byteLength - this.#overlap)))
    return this.#secrets.some((secret) => bytes.includes(secret))
  }
}

function toTexts(names: readonly string[]): readonly string[] {
  return names.slice(0, MAX_NAMES).map(toText)
}

/** A name as text; bytes that are not UTF-8 become lone surrogates, as in all paths of the API. */
function toText(name: string): string {
  return pathFromBytes(Buffer.from(name, 'latin1'))
}
