import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathFromBytes, pathToBytes } from '@sandwire/protocol'

/** A setting as `git config --list` reports it. */
export interface GitSetting {
  /** File that it is from: `system`, `global`, `local`, `worktree` or `command`. */
  readonly scope: string
  /** Section, subsection if there is one, and name, separated by dots. */
  readonly key: string
  /** Undefined for a name without `=`, which means true. */
  readonly value: string | undefined
}

/** Parses the output of `git config --list --show-scope --null`. */
export function parseSettings(output: Uint8Array): readonly GitSetting[] {
  const settings: GitSetting[] = []
  let scope: string | undefined
  for (let at = 0; at < output.length;) {
    const nul = output.indexOf(0, at)
    const end = nul < 0 ? output.length : nul
    const token = pathFromBytes(output.subarray(at, end))
    at = end + 1
    if (scope === undefined) {
      scope = token
      continue
    }
    const newline = token.indexOf('\n')
    settings.push({
      scope,
      key: newline < 0 ? token : token.slice(0, newline),
      value: newline < 0 ? undefined : token.slice(newline + 1),
    })
    scope = undefined
  }
  return settings
}

/** Scopes that git reads from files; the system's file is not used, and `command` is what sandboxd sets. */
const COPIED_SCOPES = ['global', 'local', 'worktree']
/** The format of a repository is in its own file only. */
const FORMAT = /^(core\.repositoryformatversion|extensions\..*)$/
/** Included files are part of the list already; a file of the work tree would be read anew. */
const NOT_COPIED = /^(include\.path|includeif\..*|extensions\.worktreeconfig)$/s

/** A configuration file with these settings, in their order. */
export function formatConfig(settings: readonly GitSetting[]): Uint8Array {
  const lines = settings
    .filter(
      ({ scope, key }) =>
        COPIED_SCOPES.includes(scope) && !NOT_COPIED.test(key) && (scope === 'local' || !FORMAT.test(key)),
    )
    .map(formatSetting)
  return pathToBytes(lines.join('')) ?? new Uint8Array()
}

function formatSetting({ key, value }: GitSetting): string {
  const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')]
  const section = key.slice(0, first)
  const subsection = first === last ? '' : ` "${key.slice(first + 1, last).replace(/["\\]/g, '\\$&')}"`
  const assigned = value === undefined ? '' : ` = "${quoteValue(value)}"`
  return `[${section}${subsection}]\n\t${key.slice(last + 1)}${assigned}\n`
}

function quoteValue(value: string): string {
  return value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')
}

/**
 * Everything but `config` that git takes from the common directory of a repository; `hooks` is left out. A name that does not
 * exist becomes a link without a target, because another git may create it at any time.
 */
const SHARED = ['objects', 'refs', 'packed-refs', 'reftable', 'info', 'logs', 'shallow', 'worktrees'] as const

/**
 * Stands in for the user's configuration when it is read: includes the user's files in git's order. The setting proves that git
 * uses this file (2.32 or newer).
 */
export const GLOBAL_PROBE = 'sandwire.global'
const GLOBAL_CONFIG = `[sandwire]\n\tglobal = 1\n[include]\n\tpath = ~/.config/git/config\n\tpath = ~/.gitconfig\n`

/** A folder of sandboxd that git may read, and that processes of the sandbox cannot write to when they run as another user. */
export class GitScratch implements Disposable {
  readonly #folder: string

  /** Creates a folder in `parent`. */
  constructor(parent: string) {
    this.#folder = mkdtempSync(join(parent, 'sandwire-git-'))
    chmodSync(this.#folder, 0o711)
    writeReadable(this.globalConfig, GLOBAL_CONFIG)
  }

  /** File that names the user's configuration files. */
  get globalConfig(): string {
    return join(this.#folder, 'global')
  }

  /** Creates a common directory with these settings in place of those of the repository at `commonPath`. */
  openCommonFolder(
    commonPath: string,
    settings: readonly GitSetting[],
  ): { readonly path: string; readonly remove: () => void } {
    const path = join(this.#folder, crypto.randomUUID())
    mkdirSync(path)
    try {
      chmodSync(path, 0o755)
      writeReadable(join(path, 'config'), formatConfig(settings))
      for (const name of SHARED)
        symlinkSync(Buffer.from(pathToBytes(`${commonPath}/${name}`) ?? []), join(path, name))
    } catch (error) {
      rmSync(path, { recursive: true, force: true })
      throw error
    }
    return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Whatever the umask is: git runs as another user. */
function writeReadable(file: string, content: string | Uint8Array): void {
  writeFileSync(file, content)
  chmodSync(file, 0o644)
}
