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
