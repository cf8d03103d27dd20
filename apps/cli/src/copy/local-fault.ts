import { AdvisedError } from '../errors/advised-error.ts'
import { printable } from '../text/printable.ts'
import { fail, type LocalPlace } from './ends.ts'
import { Refused } from './local-folder.ts'
import { whyOf } from './local-tree.ts'

/** What the system of this machine says; what is wrong with a connection is no such error. */
function isOfSystem(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

export function noSpace(): AdvisedError {
  return new AdvisedError(
    'disk_full',
    'Cannot copy: no space is left on this machine',
    'make room, then copy again',
  )
}

/** Throws what went wrong on this machine in words; anything else as it is. */
export function blame(caught: unknown, place: LocalPlace, direction: 'from' | 'to'): never {
  const isRefused = caught instanceof Refused
  if (place.is === 'stream' || !(isRefused || isOfSystem(caught))) throw caught
  const why = isRefused ? caught.message : whyOf(caught)
  if (why === 'no space is left') throw noSpace()
  const shown = `"${printable(place.path)}"`
  return fail(direction === 'to' ? `to ${shown}` : shown, why)
}
