import path from 'node:path'
import { serversFile } from './data/servers-file.ts'
import { defaultRunBase } from './isolation/isolation.ts'

/** The package that this file belongs to, with the programs of all others beside it. */
const PROGRAM = path.resolve(import.meta.dir, '../../..')

/** The outermost folder of packages that a file is in, or its own folder. */
function findPackagesFolder(file: string): string {
  const parts = file.split(path.sep)
  const at = parts.indexOf('node_modules')
  return at === -1 ? path.dirname(file) : parts.slice(0, at + 1).join(path.sep)
}

/** Who asks, and what tells where their things are. */
export interface Caller {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly uid: number
}

/**
 * Files and folders that this program runs from or believes: code, packages, the executable, the list of servers, sockets of
 * sandboxes. Whoever can write there can run code as this user.
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
