import { setFileGroup, setFileUser } from '../../processes/linux/libc.ts'
import { dropGroups } from '../beneath/system-calls.ts'

/** Invalid id: setfsuid and setfsgid return the current one and change nothing. */
const INVALID_ID = 0xffff_ffff

/**
 * Gives this thread the file access rights of a user, permanently and without supplementary groups. Returns false when the
 * kernel did not do it.
 */
export function becomeFileUser({ uid, gid }: { readonly uid: number; readonly gid: number }): boolean {
  if (dropGroups() !== 0) return false
  setFileGroup(gid)
  setFileUser(uid)
  return setFileUser(INVALID_ID) === uid && setFileGroup(INVALID_ID) === gid
}
