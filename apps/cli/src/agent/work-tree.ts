import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { HintedError } from '../errors/errors.ts'
import { joinLocalPath, type LocalEntry, statLocal, toLocalPath } from '../copy/local-entries.ts'

/** Mode of a submodule in a tree. */
const GITLINK = '160000'

/** Has precedence over every `.gitattributes`. */
const PLAIN_ATTRIBUTES = '* !text !eol !crlf !ident !filter !working-tree-encoding !whitespace\n'

interface GitResult {
  readonly code: number
  readonly stdout: Uint8Array
  readonly stderr: string
}

/** Runs git in a folder of the user, with the user's configuration. */
function git(
  cwd: string,
  args: readonly string[],
  { input, env = {} }: { readonly input?: Uint8Array; readonly env?: Record<string, string> } = {},
): GitResult {
  const child = Bun.spawnSync(['git', ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdin: input ?? 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return { code: child.exitCode, stdout: child.stdout, stderr: child.stderr.toString().trim() }
}

function checked(result: GitResult, action: string): Uint8Array {
  if (result.code !== 0) throw new SandwireError('git_failed', `Cannot ${action}: ${result.stderr}`)
  return result.stdout
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).trim()
}

/** Splits at NUL bytes. */
function fields(bytes: Uint8Array): readonly Uint8Array[] {
  const found: Uint8Array[] = []
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(0, from)
    if (end < 0) break
    found.push(bytes.subarray(from, end))
    from = end + 1
  }
  return found
}

/** Files of a git work tree: tracked ones, and others that are not ignored. */
export class WorkTree {
  /** Its top folder. */
  readonly root: string

  private constructor(root: string) {
    this.root = root
  }

  /** The work tree of a folder; throws when it is in none. */
  static find(folder: string): WorkTree {
    const found = git(folder, ['rev-parse', '--show-toplevel'])
    if (found.code === 0) return new WorkTree(text(found.stdout))
    throw new HintedError(
      'not_a_repository',
      'This folder is not in a git work tree',
      'run this in one, or give a repository with --repo URL',
    )
  }

  /** Paths to send, sorted; submodules and deleted files are left out. */
  #paths(): readonly Uint8Array[] {
    const listed = fields(
      checked(git(this.root, ['ls-files', '-z', '--stage', '--cached']), 'list the files'),
    )
    const others = fields(
      checked(git(this.root, ['ls-files', '-z', '--others', '--exclude-standard']), 'list the files'),
    )
    const tracked = listed
      .filter((line) => !new TextDecoder().decode(line.subarray(0, GITLINK.length)).startsWith(GITLINK))
      .map((line) => line.subarray(line.indexOf(0x09) + 1))
    // A path with a slash at its end is a repository inside this one.
    const untracked = others.filter((name) => name.at(-1) !== 0x2f)
    const unique = new Map(
      [...tracked, ...untracked].map((name) => [Buffer.from(name).toString('latin1'), name]),
    )
    return [...unique.entries()].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, name]) => name)
  }

  /** The files with their folders, in the order of an archive. */
  *entries(): Generator<LocalEntry> {
    const root = toLocalPath(this.root)
    const folders = new Set<string>()
    for (const bytes of this.#paths()) {
      const name = pathFromBytes(bytes)
      const at = joinLocalPath(root, name)
      let entry: LocalEntry
      try {
        entry = statLocal(at, name)
      } catch {
        // Deleted, but still in the index.
        continue
      }
      if (entry.kind !== 'file' && entry.kind !== 'link') continue
      const parts = name.split('/').slice(0, -1)
      for (let depth = 1; depth <= parts.length; depth++) {
        const folder = parts.slice(0, depth).join('/')
        if (folders.has(folder)) continue
        folders.add(folder)
        yield statLocal(joinLocalPath(root, folder), folder)
      }
      yield entry
    }
  }

  /** Git tree hash of the files, by which a change is noticed. Writes nothing to the repository. */
  hash(): string {
    const scratch = mkdtempSync(path.join(tmpdir(), 'sbx-agent-'))
    try {
      const objects = text(
        checked(git(this.root, ['rev-parse', '--git-path', 'objects']), 'read the repository'),
      )
      const env = {
        GIT_INDEX_FILE: path.join(scratch, 'index'),
        GIT_OBJECT_DIRECTORY: scratch,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: path.resolve(this.root, objects),
      }
      const present = this.#presentPaths()
      const input = Buffer.concat(present.flatMap((name) => [Buffer.from(name), Buffer.from([0])]))
      checked(git(this.root, ['update-index', '--add', '-z', '--stdin'], { input, env }), 'read the files')
      return text(checked(git(this.root, ['write-tree'], { env }), 'read the files'))
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  }

  /**
   * Applies a patch to the files, all of it or nothing. A git directory of its own keeps filters and line endings of the
   * repository out of it, because the patch is one of the bytes that were sent.
   */
  apply(patch: Uint8Array): void {
    const scratch = mkdtempSync(path.join(tmpdir(), 'sbx-agent-'))
    try {
      checked(git(scratch, ['init', '--quiet', '--template=']), 'apply the changes')
      const gitDir = path.join(scratch, '.git')
      mkdirSync(path.join(gitDir, 'info'), { recursive: true })
      writeFileSync(path.join(gitDir, 'info', 'attributes'), PLAIN_ATTRIBUTES)
      const env = { GIT_DIR: gitDir, GIT_WORK_TREE: this.root }
      const args = ['-c', 'core.autocrlf=false', 'apply', '--binary', '--whitespace=nowarn', '-']
      checked(git(this.root, args, { input: patch, env }), 'apply the changes')
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  }

  /** Summary of a patch, one line per file. */
  stat(patch: Uint8Array): string {
    return summarize(patch, this.root)
  }

  #presentPaths(): readonly Uint8Array[] {
    const root = toLocalPath(this.root)
    return this.#paths().filter((bytes) => {
      const name = pathFromBytes(bytes)
      try {
        const { kind } = statLocal(joinLocalPath(root, name), '')
        return kind === 'file' || kind === 'link'
      } catch {
        // Deleted.
        return false
      }
    })
  }
}

/** Summary of a patch, one line per file; empty without git. */
export function summarize(patch: Uint8Array, cwd: string): string {
  const { code, stdout } = git(cwd, ['apply', '--stat', '--summary', '-'], { input: patch })
  return code === 0 ? new TextDecoder().decode(stdout) : ''
}
