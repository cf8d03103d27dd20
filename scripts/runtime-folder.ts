import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** A private folder for one run. */
export interface RuntimeFolder {
  readonly path: string
  /** Beside the folder, so that it can be read after a run that went wrong. */
  readonly logFile: string
  /** Writes a file that only this user can read; returns its path. */
  readonly write: (name: string, text: string) => string
  readonly remove: () => void
}

/** A folder that belongs to this user alone, as the one that `XDG_RUNTIME_DIR` names has to. */
function isPrivate(directory: string): boolean {
  try {
    const { uid, mode } = lstatSync(directory)
    accessSync(directory, constants.W_OK)
    return uid === process.getuid?.() && (mode & 0o077) === 0
  } catch {
    // Absent or not ours: another place is used.
    return false
  }
}

/** Where folders of runs are kept; a fresh private folder when this user has no place of its own that can be written. */
function findParent(env: Environment): string {
  const runtime = env['XDG_RUNTIME_DIR'] ?? ''
  const base =
    path.isAbsolute(runtime) && isPrivate(runtime) ? runtime : path.join(env['HOME'] ?? homedir(), '.cache')
  const parent = path.join(base, 'sandwire')
  try {
    mkdirSync(parent, { recursive: true, mode: 0o700 })
    chmodSync(parent, 0o700)
    accessSync(parent, constants.W_OK)
    return parent
  } catch {
    // A home that cannot be written is no reason not to start.
    return mkdtempSync(path.join(tmpdir(), 'sandwire-'))
  }
}

/** Creates the folder under `$XDG_RUNTIME_DIR`, else `~/.cache`, else the system's folder for temporary files. */
export function createRuntimeFolder(env: Environment): RuntimeFolder {
  const own = mkdtempSync(path.join(findParent(env), 'run-'))
  return {
    path: own,
    logFile: `${own}.log`,
    write: (name, text) => {
      const file = path.join(own, name)
      writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
      return file
    },
    remove: () => rmSync(own, { recursive: true, force: true }),
  }
}
