import { INSIDE } from './isolation.ts'
import type { MemoryFolder } from './memory-folders.ts'

const MEBIBYTE = 1024 ** 2

/** Folder of programs in the sandbox, each in a folder of its own. */
export const INSIDE_PROGRAMS = '/opt/sandwire'

/** Contains only mount points; read-only. */
const RUN_BYTES = 16 * MEBIBYTE

/** Capabilities of sandboxd in its user namespace: to start processes as the user, without capabilities, and to signal them. */
const DAEMON_CAPABILITIES = ['CAP_KILL', 'CAP_SETGID', 'CAP_SETPCAP', 'CAP_SETUID']

/** A path of this machine and its path in the sandbox. */
export interface Binding {
  readonly from: string
  readonly to: string
}

/** The users in a sandbox. */
export type UserModel =
  /** sandboxd is root of a prepared user namespace; the user's processes have uid 1000. */
  | { readonly kind: 'two'; readonly usernsFd: number }
  /** Everything has uid 1000, which maps to the current user. */
  | { readonly kind: 'one' }

/** Inputs of bubblewrap's command line. */
export interface BwrapPlan {
  readonly hostname: string
  /** Folders in memory, and the mounted ones that are bound for them. bubblewrap's own have no limit on inodes. */
  readonly memory: readonly (MemoryFolder & { readonly from?: string })[]
  readonly users: UserModel
  readonly filterFd: number
  /** Where bubblewrap writes the pid of the sandbox's init. */
  readonly infoFd: number
  /** System folders that are symbolic links into `/usr`, such as `lib64`. */
  readonly usrLinks: readonly string[]
  /** Folders of the system and of programs. */
  readonly system: readonly Binding[]
  readonly readOnly: readonly Binding[]
  readonly writable: readonly Binding[]
  /** A complete `/dev`; absent: bubblewrap's, with the machine's device nodes. */
  readonly devices: string | undefined
  /** A mounted devpts with a limit on terminals. */
  readonly terminals: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly command: readonly string[]
}

function users(model: UserModel): string[] {
  switch (model.kind) {
    case 'two':
      return [
        '--userns',
        String(model.usernsFd),
        '--uid',
        '0',
        '--gid',
        '0',
        '--cap-drop',
        'ALL',
        ...DAEMON_CAPABILITIES.flatMap((capability) => ['--cap-add', capability]),
      ]
    case 'one':
      return ['--unshare-user', '--disable-userns', '--uid', '1000', '--gid', '1000', '--cap-drop', 'ALL']
  }
}

function memoryFolder(folder: string, mode: string, bytes: number): string[] {
  return ['--perms', mode, '--size', String(bytes), '--tmpfs', folder]
}

function bind(option: string, bindings: readonly Binding[]): string[] {
  return bindings.flatMap(({ from, to }) => [option, from, to])
}

/** Closes the descriptor that bubblewrap leaves open, then runs the command. */
function closing(plan: BwrapPlan): string[] {
  if (plan.users.kind === 'one') return [...plan.command]
  return ['/bin/sh', '-c', `exec "$@" ${plan.users.usernsFd}<&-`, 'sh', ...plan.command]
}

/** Arguments of bubblewrap. Nothing else of this machine is visible in the sandbox. */
export function createBwrapArgv(plan: BwrapPlan): string[] {
  return [
    ...users(plan.users),
    '--unshare-ipc',
    '--unshare-pid',
    '--unshare-net',
    '--unshare-uts',
    '--unshare-cgroup-try',
    '--die-with-parent',
    '--new-session',
    '--hostname',
    plan.hostname,
    '--seccomp',
    String(plan.filterFd),
    '--info-fd',
    String(plan.infoFd),
    '--clearenv',
    ...Object.entries(plan.env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['/var', '/var/lib', '/home', '/opt', INSIDE_PROGRAMS].flatMap((folder) => [
      '--perms',
      '0755',
      '--dir',
      folder,
    ]),
    ...bind('--ro-bind', plan.system),
    ...plan.usrLinks.flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    '--proc',
    '/proc',
    ...(plan.devices === undefined ? ['--dev', '/dev'] : ['--dev-bind', plan.devices, '/dev']),
    ...(plan.terminals === undefined ? [] : ['--dev-bind', plan.terminals, '/dev/pts']),
    ...plan.memory.flatMap(({ path, bytes, from }) =>
      from === undefined ? memoryFolder(path, '1777', bytes) : ['--bind', from, path],
    ),
    ...memoryFolder('/run', '0755', RUN_BYTES),
    '--symlink',
    '../tmp',
    '/var/tmp',
    '--symlink',
    '../run',
    '/var/run',
    ...bind('--ro-bind', plan.readOnly),
    ...bind('--bind', plan.writable),
    // Would make device nodes unusable that are in the folder itself; a complete `/dev` is read-only already.
    ...(plan.devices === undefined ? ['--remount-ro', '/dev'] : []),
    '--remount-ro',
    '/run',
    '--remount-ro',
    '/',
    '--chdir',
    INSIDE.workspace,
    '--',
    ...closing(plan),
  ]
}
