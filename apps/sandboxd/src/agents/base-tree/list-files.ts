import type { RunTool } from '../../workspace/tool.ts'
import { splitNames } from './byte-lists.ts'
import { runProgram } from './private-git.ts'

/** What is in the workspace; names as in `byte-lists.ts`. */
export interface WorkspaceFiles {
  /** Readable regular files and symlinks. */
  readonly files: readonly string[]
  /** Those of them that are symlinks. */
  readonly links: ReadonlySet<string>
  /** Files and folders that cannot be read. */
  readonly unreadable: readonly string[]
  /** Pipes, sockets and devices. */
  readonly special: readonly string[]
}

/** Prints one letter and the path: `f` files, `l` links, `u` unreadable, `s` special. Metadata of repositories is left out. */
const FIND: readonly [string, ...string[]] = [
  'find',
  ...[
    '. -mindepth 1',
    '-name .git -prune',
    '-o -type d ! ( -readable -executable ) -prune -printf u%P\\0',
    '-o -type d',
    '-o -type f ! -readable -printf u%P\\0',
    '-o -type f -printf f%P\\0',
    '-o -type l -printf l%P\\0',
    '-o -printf s%P\\0',
  ].flatMap((part) => part.split(' ')),
]

/** Lists the workspace with our own walk: git would stop at repositories within it. */
export async function listFiles(runTool: RunTool, workspace: number): Promise<WorkspaceFiles> {
  // Code 1: something changed during the walk, or could not be read, which is in the list.
  const { stdout } = await runProgram(runTool, workspace, { argv: FIND, allowed: [0, 1] })
  const found = (kind: string): string[] =>
    entries.filter((entry) => entry.startsWith(kind)).map((entry) => entry.slice(1))
  const entries = splitNames(stdout)
  const links = found('l')
  return {
    files: [...found('f'), ...links],
    links: new Set(links),
    unreadable: found('u'),
    special: found('s'),
  }
}

/** True for what a git tree can hold. */
export function canBeInTree({ links }: WorkspaceFiles, name: string): boolean {
  // `.git` in other capitalizations is refused on every system, as is a link that git would read its submodules from.
  if (/(?:^|\/)\.git(?:$|\/)/i.test(name)) return false
  return !(/(?:^|\/)\.gitmodules$/i.test(name) && links.has(name))
}
