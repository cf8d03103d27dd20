import { existsSync } from 'node:fs'
import path from 'node:path'

/** The program that runs in every sandbox. */
export interface DaemonProgram {
  /** Bun, or a compiled sandboxd, on this machine. */
  readonly executable: string
  /** Code for Bun: a folder and the file in it to run. Absent when the executable is compiled. */
  readonly code?: { readonly folder: string; readonly entry: string }
}

/** What an isolation needs to know of this machine. */
export interface IsolationSettings {
  /** Sandboxwide files live below it for as long as the sandboxes do. */
  readonly dataFolder: string
  /** Sockets and mount points live below it; gone after a reboot. Short, because socket addresses are. */
  readonly runBase: string
  readonly program: DaemonProgram
  readonly isRoot: boolean
  /** A folder of this user that sandboxes have as their workspace, in place of one of their own. Only without `isRoot`. */
  readonly workspace?: string
}

/** `sun_path` holds 107 bytes and a zero; the longest socket below is `ID/egress/proxy.sock`, and a variant ends in `-local`. */
const MAX_RUN_BASE_BYTES = 107 - `/${'i'.repeat(32)}/egress/proxy.sock`.length - '-local'.length

/** Where sockets and mount points of sandboxes belong on this machine. */
export function defaultRunBase(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  if (uid === 0) return '/run/sandwire'
  const runtime = env['XDG_RUNTIME_DIR']
  if (runtime !== undefined && path.isAbsolute(runtime) && existsSync(runtime)) {
    const base = path.join(runtime, 'sandwire')
    if (Buffer.byteLength(base) <= MAX_RUN_BASE_BYTES) return base
  }
  return `/tmp/sandwire-${uid}`
}
