import { setFileGroup, setFileUser } from '../linux/libc.ts'

/** The user whom processes run as. */
export interface RunAs {
  readonly uid: number
  readonly gid: number
}

/** Where `setpriv` is when the environment names no PATH. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/local/bin'
/** No user: asks whose rights a thread has. */
const NOBODY_AT_ALL = 0xffff_ffff

/** Runs an action with another user's rights on files, or as it is. What it opens belongs to that user. */
export type AsUser = <T>(action: () => T) => T

/** How to act and start processes as another user. */
export interface UserSwitch {
  readonly asUser: AsUser
  readonly launcher: readonly string[]
}

export const NO_SWITCH: UserSwitch = { asUser: (action) => action(), launcher: [] }

/**
 * Prepares to act as `user`. Pipes and terminals opened inside `asUser` belong to the user, who can so open them again
 * as `/dev/stdin`; files are found, and directories entered, as the user finds them. It must be synchronous: the rights
 * are this thread's. Returns why it cannot be done, if it cannot.
 */
export function openUserSwitch(user: RunAs): UserSwitch | string {
  const setpriv = Bun.which('setpriv') ?? Bun.which('setpriv', { PATH: SYSTEM_PATH })
  if (setpriv === null) return '"setpriv" is not installed'
  const asUser = createAsUser(user)
  if (!asUser(() => setFileUser(NOBODY_AT_ALL) === user.uid && setFileGroup(NOBODY_AT_ALL) === user.gid))
    return 'the right to change users is missing'
  const launcher = [setpriv, ...dropEverything(user), '--']
  // As processes will be started: some kernels keep capabilities from a program that is started as another user on files.
  const probe = asUser(() => Bun.spawnSync([...launcher, '/bin/sh', '-c', ':'], { env: {}, stderr: 'pipe' }))
  if (!probe.success) return probe.stderr.toString().trim()
  return { asUser, launcher }
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
