import { existsSync } from 'node:fs'
import path from 'node:path'
import type { SandboxLimits } from '@sandwire/internal-api'
import type { EgressLaunch } from '../egress/egress-process.ts'

/** Paths in a sandbox, the same on every machine. */
export const INSIDE = {
  workspace: '/workspace',
  home: '/home/user',
  /** Folder with sandboxd's socket and key; not writable by the user's processes if they have another uid. */
  run: '/run/sandwire',
  /** Where sandboxd listens. */
  daemonSocket: '/run/sandwire/sandboxd.sock',
  /** Socket of the egress proxy, in a folder that is read-only inside; missing under policy `none`. */
  proxySocket: '/run/sandwire-egress/proxy.sock',
  /** Socket of the credential gateway, in a folder that is read-only inside. */
  gatewaySocket: '/run/sandwire-gateway/gate.sock',
  /** sandboxd's own files on the sandbox's disk: journals and results of agents. The user can enter it, but neither list nor write it. */
  state: '/var/lib/sandwire',
  /** Programs of coding agents, read-only. */
  agents: '/opt/agents',
  /** Control's public key. */
  publicKey: '/run/sandwire/public-key',
} as const

/** A sandbox to launch. */
export interface LaunchPlan {
  readonly id: string
  readonly name: string
  readonly limits: SandboxLimits
  /** Arguments of sandboxd; the isolation adds those about users. */
  readonly daemonArgs: readonly string[]
  /** Content of `INSIDE.publicKey`. */
  readonly publicKey: string
  /** True when `outside.proxySocket` is bound to `INSIDE.proxySocket`. */
  readonly hasEgress: boolean
}

/** A sandbox to prepare. */
export interface PreparePlan extends Pick<LaunchPlan, 'id' | 'limits'> {
  /** True when its files must exist: they are never replaced by empty ones. */
  readonly hasFiles?: boolean
}

/** Paths on this machine of files in the sandbox. Only this user and the sandbox can enter their folder. */
export interface OutsidePaths {
  readonly daemonSocket: string
  readonly proxySocket: string
  readonly gatewaySocket: string
  readonly workspace: string
  readonly home: string
  readonly state: string
}

/** A launched sandbox. */
export interface LaunchedSandbox {
  /** Root process of the sandbox. */
  readonly pid: number
  /** Host uid of sandboxd. */
  readonly daemonUid: number
  /** Host pid of sandboxd, while it runs. */
  findDaemon(): number | undefined
  /** Output of sandboxd: the ready line on `stdout`, its log on `stderr`. */
  readonly stdout: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly stderr: ReadableStream<Uint8Array<ArrayBuffer>>
  /** Resolves when the sandbox has ended, with the reason: `exit_N`, `signal_NAME`, `oom`, `disk_full`. */
  readonly ended: Promise<string>
  /** Limits what processes may still write to the sandbox's disk image; absent without one. */
  readonly limitGrowth?: (bytes: number) => void
  /** Sends SIGTERM to sandboxd, then kills everything; resolves when no process and no mount is left. */
  stop(graceMs: number): Promise<void>
}

/** Isolates sandboxes from this machine. Used by supervisors, one for each sandbox; all state is in files. */
export interface Isolation {
  readonly kind: 'bubblewrap' | 'none'
  /** One line per weakness on this machine, such as `one uid for sandboxd and user processes: not started as root`. */
  readonly weaknesses: readonly string[]
  /**
   * Creates folders, image and uids of a sandbox unless they exist, and an empty folder for its sockets, which can be opened
   * before `launch`. The sandbox must not be running. Throws `MissingFile` when the files must exist and do not.
   */
  prepare(plan: PreparePlan): Promise<OutsidePaths>
  /** Path of the file or folder that holds the sandbox's files. */
  filesOf(id: string): string
  /** Starts the egress proxy of a prepared sandbox. It dies with the calling process. */
  launchEgress(id: string): Promise<EgressLaunch>
  /** Launches the sandbox. It dies with the calling process. */
  launch(plan: LaunchPlan): Promise<LaunchedSandbox>
  /** Cleans up after a supervisor that died: kills processes, removes everything but the files. */
  sweep(id: string): Promise<void>
  /** Removes everything that `prepare` created, including the user's files. */
  remove(id: string): Promise<void>
}

/** The program that runs in every sandbox. */
export interface DaemonProgram {
  /** Path of Bun, or of a compiled sandboxd. */
  readonly executable: string
  /** Bundle for Bun: its folder and main file. Absent for a compiled executable. */
  readonly code?: { readonly folder: string; readonly entry: string }
}

/** Settings of an isolation. */
export interface IsolationSettings {
  /** Contains the files of sandboxes. */
  readonly dataFolder: string
  /** Contains sockets and mount points; empty after a reboot. Must be short, because socket addresses are. */
  readonly runBase: string
  readonly program: DaemonProgram
  readonly isRoot: boolean
  /** Limit on reads and on writes of a sandbox's disk, where cgroups have one; absent or 0: none. */
  readonly diskBytesPerSecond?: number
  /** Bundle of the egress proxy; absent: bundled when needed. */
  readonly egressCode?: string
  /** True when this user can mount overlays; absent: not tried yet. */
  readonly hasOverlays?: boolean
  /** Distinguishes the names of sandboxes on this machine from those of other data folders; absent: none. */
  readonly scope?: string
  /** Owner of the sandbox of a supervisor; absent: not known. */
  readonly account?: string
  /** A served folder, used as the workspace of the only sandbox. Only without `isRoot`. */
  readonly workspace?: string
}

/** `sun_path` has 107 bytes and a NUL; the longest path below is `SCOPE-ID/egress/proxy.sock`, and one variant ends in `-local`. */
const MAX_RUN_BASE_BYTES = 107 - `/12345678-${'i'.repeat(32)}/egress/proxy.sock`.length - '-local'.length

/** The name of a sandbox on this machine, outside its data folder. */
export function nameOnMachine({ scope }: Pick<IsolationSettings, 'scope'>, id: string): string {
  return scope === undefined ? id : `${scope}-${id}`
}

/** The name of its control group: sandboxes of one account are in that of the account, if it is known. */
export function cgroupNameOf(settings: Pick<IsolationSettings, 'scope' | 'account'>, id: string): string {
  const { account } = settings
  const name = nameOnMachine(settings, id)
  return account === undefined ? name : path.join(nameOnMachine(settings, account), name)
}

/** Default folder for sockets and mount points of sandboxes. */
export function defaultRunBase(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  if (uid === 0) return '/run/sandwire'
  const runtime = env['XDG_RUNTIME_DIR']
  if (runtime !== undefined && path.isAbsolute(runtime) && existsSync(runtime)) {
    const base = path.join(runtime, 'sandwire')
    if (Buffer.byteLength(base) <= MAX_RUN_BASE_BYTES) return base
  }
  return `/tmp/sandwire-${uid}`
}
