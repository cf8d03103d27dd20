import { setFileGroup, setFileUser } from '../linux/libc.ts'
import { createLauncher, type Launcher } from './launcher.ts'

/** The user whom processes run as. */
export interface RunAs {
  readonly uid: number
  readonly gid: number
}

/** Where programs are when the environment names no PATH. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/local/bin'
/** No user: asks whose rights a thread has. */
const NOBODY_AT_ALL = 0xffff_ffff

/** Runs an action with another user's rights on files, or as it is. What it opens belongs to that user. */
export type AsUser = <T>(action: () => T) => T

/** How to act and start processes as another user. */
export interface UserSwitch {
  readonly asUser: AsUser
  /** Undefined: processes run as whoever this is. */
  readonly launcher: Launcher | undefined
}

export const NO_SWITCH: UserSwitch = { asUser: (action) => action(), launcher: undefined }

/**
 * Prepares to act as `user`. Pipes and terminals opened inside `asUser` belong to the user, who can so open them again
 * as `/dev/stdin`; files are found, and directories entered, as the user finds them. It must be synchronous: the rights
 * are this thread's. Returns why it cannot be done, if it cannot.
 */
export function openUserSwitch(user: RunAs): UserSwitch | string {
  const setpriv = findProgram('setpriv')
  if (setpriv === null) return '"setpriv" is not installed'
  const env = findProgram('env')
  if (env === null) return '"env" is not installed'
  const asUser = createAsUser(user)
  if (!asUser(() => setFileUser(NOBODY_AT_ALL) === user.uid && setFileGroup(NOBODY_AT_ALL) === user.gid))
    return 'the right to change users is missing'
  const words = [setpriv, ...dropEverything(user), '--'] as const
  // As processes will be started: some kernels keep capabilities from a program that is started as another user on files.
  const probe = asUser(() => Bun.spawnSync([...words, '/bin/sh', '-c', ':'], { env: {}, stderr: 'pipe' }))
  if (!probe.success) return probe.stderr.toString().trim()
  return { asUser, launcher: createLauncher(words, env) }
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

/** What the user is given: nothing but its number. */
function dropEverything({ uid, gid }: RunAs): readonly string[] {
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
