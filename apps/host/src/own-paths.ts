import path from 'node:path'
import { serversFile } from './data/servers-file.ts'
import { defaultRunBase } from './isolation/isolation.ts'

/** Root of the repository, which contains all programs. */
const PROGRAM = path.resolve(import.meta.dir, '../../..')

/** The outermost `node_modules` that contains a file, or the file's folder. */
function findPackagesFolder(file: string): string {
  const parts = file.split(path.sep)
  const at = parts.indexOf('node_modules')
  return at === -1 ? path.dirname(file) : parts.slice(0, at + 1).join(path.sep)
}

/** The current user and its environment. */
export interface Caller {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly uid: number
}

/**
 * Files and folders that this program runs from or trusts: code, packages, the executable, the list of servers, sandbox
 * sockets. Write access to them allows running code as this user.
 */
export function findOwnPaths({ env, home, uid }: Caller): readonly string[] {
  return [
    PROGRAM,
    findPackagesFolder(Bun.resolveSync('miniflare', import.meta.dir)),
    process.execPath,
    path.dirname(serversFile(env, home)),
    defaultRunBase(env, uid),
  ]
}
