import { setFileGroup, setFileUser } from '../../processes/linux/libc.ts'
import { dropGroups } from '../beneath/calls.ts'

/** No user: asks whose rights a thread has. */
const NOBODY_AT_ALL = 0xffff_ffff

/**
 * Gives this thread a user's rights on files, for good, and none of the further groups of the one who started the process.
 * False when the system did not do it.
 */
export function becomeFileUser({ uid, gid }: { readonly uid: number; readonly gid: number }): boolean {
  if (dropGroups() !== 0) return false
  setFileGroup(gid)
  setFileUser(uid)
  return setFileUser(NOBODY_AT_ALL) === uid && setFileGroup(NOBODY_AT_ALL) === gid
}
