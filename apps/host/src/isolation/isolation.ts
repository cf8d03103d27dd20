import { existsSync } from 'node:fs'
import path from 'node:path'
import type { SandboxLimits } from '@sandwire/internal-api'

/** Paths as processes in a sandbox see them, the same on every machine. */
export const INSIDE = {
  workspace: '/workspace',
  home: '/home/user',
  /** Folder with sandboxd's socket and key; writable by sandboxd, not by the user's processes where uids differ. */
  run: '/run/sandwire',
  /** Where sandboxd listens. */
  daemonSocket: '/run/sandwire/sandboxd.sock',
  /** Where the egress proxy of this sandbox listens, in a folder that nothing inside can write; absent under policy `none`. */
  proxySocket: '/run/sandwire-egress/proxy.sock',
  /** Control's public key. */
  publicKey: '/run/sandwire/public-key',
} as const

/** What to start. */
export interface LaunchPlan {
  readonly id: string
  readonly name: string
  readonly limits: SandboxLimits
  /** Arguments of sandboxd, beyond those about users, which the isolation adds. */
  readonly daemonArgs: readonly string[]
  /** Text that becomes `INSIDE.publicKey`. */
  readonly publicKey: string
  /** Whether processes can reach the egress proxy: `outside.proxySocket` is bound to `INSIDE.proxySocket`. */
  readonly hasEgress: boolean
}

/** Where the outside finds what the plan put inside. All below a folder only this user and the sandbox enter. */
export interface OutsidePaths {
  readonly daemonSocket: string
  readonly proxySocket: string
  readonly workspace: string
  readonly home: string
}

/** A sandbox that was started. */
export interface LaunchedSandbox {
  /** Process that everything in the sandbox hangs on. */
  readonly pid: number
  /** User of this machine as which sandboxd listens. */
  readonly daemonUid: number
  /** Process of this machine that is sandboxd, while it is there. */
  findDaemon(): number | undefined
  /** Output of sandboxd: the ready line on `stdout`, its log on `stderr`. */
  readonly stdout: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly stderr: ReadableStream<Uint8Array<ArrayBuffer>>
  /** Resolves when the sandbox has ended, with why: `exit_N`, `signal_NAME`, `oom`, `disk_full`. */
  readonly ended: Promise<string>
  /** Asks sandboxd to end, then ends everything; resolves when no process of it is left and what was mounted is not. */
  stop(graceMs: number): Promise<void>
}

/** A way to keep sandboxes apart from this machine. Used by a supervisor, one per sandbox; state is in files. */
export interface Isolation {
  readonly kind: 'bubblewrap' | 'none'
  /** One line per weakness on this machine, such as `one uid for sandboxd and user processes: not started as root`. */
  readonly weaknesses: readonly string[]
  /**
   * Makes folders, image and uid of a sandbox unless they exist, and the folder of its sockets anew; then sockets can be
   * opened before `launch`. Nothing of the sandbox may run.
   */
  prepare(plan: Pick<LaunchPlan, 'id' | 'limits'>): Promise<OutsidePaths>
  /** Starts it. Everything dies with the calling process. */
  launch(plan: LaunchPlan): Promise<LaunchedSandbox>
  /** Ends and removes what a sandbox left whose supervisor died: all but its files. Nothing to remove is no error. */
  sweep(id: string): Promise<void>
  /** Removes what `prepare` made, files of the user included. Nothing to remove is no error. */
  remove(id: string): Promise<void>
}

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
