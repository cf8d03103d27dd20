import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { DiffFacts, WorkspaceChange } from '@sandwire/agent'
import { SAME_USER } from '../../processes/run-as.ts'
import { INHERIT_OOM_SCORE } from '../../processes/tree/oom-score.ts'
import { ProcessScanner } from '../../processes/tree/process-scanner.ts'
import { createRunTool } from '../../workspace/tool.ts'
import { baseFolder, type BaseRecord, recordBase, type TreeContext } from './base-tree.ts'
import { makeChange } from './make-change.ts'
import { makeDiff } from './make-diff.ts'

/** A workspace in a temporary folder, whose base is recorded and compared with the real git. */
export class TreeFixture implements Disposable {
  readonly #parent = mkdtempSync(path.join(tmpdir(), 'base-tree-'))
  readonly root = path.join(this.#parent, 'workspace')
  readonly home = path.join(this.#parent, 'home')
  readonly #state = path.join(this.#parent, 'state')
  readonly #descriptor: number
  readonly context: TreeContext
  readonly patchFile = path.join(this.#parent, 'patch')
  readonly packFile = path.join(this.#parent, 'pack')

  constructor() {
    for (const folder of [this.root, this.home, this.#state]) mkdirSync(folder)
    this.#descriptor = openSync(this.root, 'r')
    const runTool = createRunTool({
      baseEnv: { PATH: process.env['PATH'] ?? '', HOME: this.home },
      user: SAME_USER,
      children: new Set(),
      scanner: new ProcessScanner(),
      withOomScore: INHERIT_OOM_SCORE,
      now: () => performance.now(),
    })
    this.context = { runTool, asUser: SAME_USER.asUser, workspace: this.#descriptor, folder: this.#state }
  }

  /** A path of the workspace, with any bytes. */
  at(name: string): Buffer {
    return Buffer.concat([Buffer.from(`${this.root}/`), Buffer.from(name, 'latin1')])
  }

  write(name: string, content: string | Uint8Array, mode = 0o644): void {
    const file = this.at(name)
    const folder = file.subarray(0, file.lastIndexOf('/'))
    mkdirSync(folder, { recursive: true })
    writeFileSync(file, content)
    chmodSync(file, mode)
  }

  /** Git as a user of the workspace runs it. */
  git(...args: readonly string[]): string {
    return run(['git', '-c', 'user.name=A', '-c', 'user.email=a@b', ...args], this.root, { HOME: this.home })
  }

  recordBase(): Promise<BaseRecord> {
    return recordBase(this.context)
  }

  async makeDiff(base: BaseRecord, secrets: readonly string[] = []): Promise<DiffFacts> {
    return makeDiff(this.context, base, { patchFile: this.patchFile, packFile: this.packFile, secrets })
  }

  async makeChange(secrets: readonly string[] = [], ref?: string): Promise<WorkspaceChange> {
    const { context, patchFile, packFile } = this
    return makeChange(context, { patchFile, packFile, secrets, ref })
  }

  /** Git in another repository, with the pack of the change on stdin. */
  gitIn(repository: string, ...args: readonly string[]): string {
    const stdin = existsSync(this.packFile) ? readFileSync(this.packFile) : undefined
    return run(['git', ...args], repository, { HOME: this.home }, stdin)
  }

  /** The tree that the patch makes of the base, by `git apply` in another repository. */
  applied(base: BaseRecord): { readonly treeHash: string; readonly entries: ReadonlyMap<string, string> } {
    const repository = mkdtempSync(path.join(this.#parent, 'applied-'))
    const env = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
    const git = (...args: readonly string[]): string =>
      run(['git', '-c', 'core.protectNTFS=false', ...args], repository, env)
    git('init', '-q')
    writeFileSync(
      path.join(repository, '.git/objects/info/alternates'),
      `${path.join(baseFolder(this.#state), 'objects')}\n`,
    )
    git('read-tree', base.treeHash)
    if (lstatSync(this.patchFile).size > 0)
      git('apply', '--cached', '--binary', '--whitespace=nowarn', this.patchFile)
    const treeHash = git('write-tree').trim()
    const listed = git('ls-tree', '-r', '-z', treeHash).split('\0').filter(Boolean)
    const entries = listed.map((line) => {
      const facts = line.slice(0, line.indexOf('\t'))
      const name = line.slice(facts.length + 1)
      const [mode = '', , hash = ''] = facts.split(' ')
      return [name, `${mode} ${hash}`] as const
    })
    rmSync(repository, { recursive: true })
    return { treeHash, entries: new Map(entries) }
  }

  /** Files of the workspace as git would name and hash them, by a walk of our own; without metadata of repositories. */
  walk(): ReadonlyMap<string, string> {
    const entries = new Map<string, string>()
    const visit = (folder: Buffer, prefix: string): void => {
      for (const name of readdirSync(folder, { encoding: 'buffer' }).map((raw) => raw.toString('latin1'))) {
        if (name === '.git') continue
        const file = Buffer.concat([folder, Buffer.from(`/${name}`, 'latin1')])
        const stats = lstatSync(file)
        const label = `${prefix}${name}`
        if (stats.isDirectory()) visit(file, `${label}/`)
        else if (stats.isSymbolicLink())
          entries.set(label, `120000 ${blobHash(readlinkSync(file, { encoding: 'buffer' }))}`)
        else if (stats.isFile())
          entries.set(
            label,
            `${(stats.mode & 0o100) === 0 ? '100644' : '100755'} ${blobHash(readFileSync(file))}`,
          )
      }
    }
    visit(Buffer.from(this.root), '')
    return entries
  }

  /** Which of these names git ignores, in a repository of its own on the workspace. */
  ignored(names: readonly string[]): ReadonlySet<string> {
    const gitDir = mkdtempSync(path.join(this.#parent, 'ignored-'))
    const env = { GIT_CONFIG_GLOBAL: '/dev/null', HOME: gitDir, GIT_DIR: gitDir, GIT_WORK_TREE: this.root }
    run(['git', 'init', '-q'], this.root, env)
    const listed = run(
      ['git', 'ls-files', '-z', '--others', '--ignored', '--exclude-standard'],
      this.root,
      env,
    )
    const found = new Set(listed.split('\0'))
    return new Set(names.filter((name) => found.has(name)))
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
    rmSync(this.#parent, { recursive: true, force: true })
  }
}

function blobHash(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.byteLength}\0`).update(content).digest('hex')
}

/** Output as text with one character per byte. */
function run(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  stdin?: Buffer,
): string {
  const { stdout, stderr, success } = Bun.spawnSync([...argv], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    ...(stdin === undefined ? {} : { stdin }),
  })
  if (!success) throw new Error(`${argv.join(' ')}: ${stderr.toString()}`)
  return stdout.toString('latin1')
}
