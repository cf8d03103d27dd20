import { setFileGroup, setFileUser } from './linux/libc.ts'

/** The user that processes run as. */
export interface RunAs {
  readonly uid: number
  readonly gid: number
}

/** Searched when the environment has no PATH. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/local/bin'
/** An invalid id: setfsuid and setfsgid then return the current one and change nothing. */
const INVALID_ID = 0xffff_ffff

/** Runs an action with the file-system permissions of the processes' user, who owns what the action creates. */
export type AsUser = <T>(action: () => T) => T

/** Acts and starts processes as another user. */
export interface UserContext {
  readonly asUser: AsUser
  /** Undefined: processes run as sandboxd's own user. */
  readonly launcher: Launcher | undefined
}

export const SAME_USER: UserContext = { asUser: (action) => action(), launcher: undefined }

/**
 * Prepares to act as `user`. Pipes and terminals opened inside `asUser` belong to the user, whose processes can therefore
 * open them again as `/dev/stdin`; paths are resolved with the user's permissions. The action must be synchronous, because
 * the permissions are those of the thread. Returns the problem when sandboxd cannot act as the user.
 */
export function createUserContext(user: RunAs): UserContext | { readonly problem: string } {
  const setpriv = findProgram('setpriv')
  if (setpriv === null) return { problem: '"setpriv" is not installed' }
  const env = findProgram('env')
  if (env === null) return { problem: '"env" is not installed' }
  const asUser = createAsUser(user)
  if (!asUser(() => setFileUser(INVALID_ID) === user.uid && setFileGroup(INVALID_ID) === user.gid))
    return { problem: 'the capability to change users is missing' }
  const prefix = [setpriv, ...setprivArguments(user), '--'] as const
  // Probed the same way processes are started later: some kernels drop capabilities at exec while another user's file permissions are in effect.
  const probe = asUser(() => Bun.spawnSync([...prefix, '/bin/sh', '-c', ':'], { env: {}, stderr: 'pipe' }))
  if (!probe.success) return { problem: probe.stderr.toString().trim() }
  return { asUser, launcher: createLauncher(prefix, env) }
}

function findProgram(name: string): string | null {
  return Bun.which(name) ?? Bun.which(name, { PATH: SYSTEM_PATH })
}

function createAsUser({ uid, gid }: RunAs): AsUser {
  const ownUid = process.geteuid?.() ?? 0
  const ownGid = process.getegid?.() ?? 0
  return (action) => {
    setFileGroup(gid)
    setFileUser(uid)
    try {
      return action()
    } finally {
      setFileUser(ownUid)
      setFileGroup(ownGid)
    }
  }
}

/** Arguments of setpriv that leave nothing but user and group. */
function setprivArguments({ uid, gid }: RunAs): readonly string[] {
  return [
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--ambient-caps=-all',
    '--bounding-set=-all',
    '--no-new-privs',
  ]
}

type Environment = Readonly<Record<string, string>>

/** The command to execute in place of another, and its environment. */
interface Launch {
  readonly argv: readonly [string, ...string[]]
  readonly env: Environment
}

/** Prefixes a command with a program that drops privileges and executes it. */
export type Launcher = (command: readonly string[], env: Environment) => Launch

/**
 * Variables that the C library acts on in any program. glibc ignores them in set-user-ID programs; setpriv holds capabilities in
 * the same way, but not every kernel sets AT_SECURE for it.
 */
const LIBC_VARIABLES =
  /^(?:LD_|GLIBC_|MALLOC_|MUSL_|RES_|RESOLV_|(?:GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|TMPDIR|TZDIR)$)/

/** A launcher with this prefix. It withholds the C library's variables from the prefix and sets them with `env` for the command. */
export function createLauncher(prefix: readonly [string, ...string[]], envProgram: string): Launcher {
  return (command, env) => {
    const withheld = Object.entries(env).filter(([name]) => LIBC_VARIABLES.test(name))
    if (withheld.length === 0) return { argv: [...prefix, ...command], env }
    const kept = Object.entries(env).filter(([name]) => !LIBC_VARIABLES.test(name))
    const assignments = withheld.map(([name, value]) => `${name}=${value}`)
    return {
      argv: [...prefix, envProgram, ...assignments, ...hideEqualsSign(command)],
      env: Object.fromEntries(kept),
    }
  }
}

/** `env` takes a command with `=` in its name for a variable, so a shell executes such a command. */
function hideEqualsSign(command: readonly string[]): readonly string[] {
  return command[0]?.includes('=') === true ? ['/bin/sh', '-c', 'exec "$@"', 'sh', ...command] : command
}
