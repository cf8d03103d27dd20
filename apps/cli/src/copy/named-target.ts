import { closeSync, constants, lstatSync, openSync, realpathSync, statSync } from 'node:fs'
import { textOfPath } from '@sandwire/protocol'
import { Refused } from './local-folder.ts'
import { inside, type LocalPath } from './local-path.ts'

/** Where a file goes that somebody named, as `cp` has it. */
export type NamedTarget =
  /** A name in a folder: a new file, or one whose place it takes. */
  | { readonly is: 'file'; readonly base: LocalPath; readonly name: string }
  /** A device or a pipe, which stays what it is and is written into. */
  | { readonly is: 'sink'; readonly at: LocalPath; readonly isPipe: boolean }

/** Links in there stand for what processes have open: what is behind them is written, and never replaced. */
const OF_SYSTEM = /^\/(dev|proc)(\/|$)/

const SLASH = 0x2f

/** Throws the error of the system where it does not let this link be written through, as in a folder of everybody's. */
function checkWritable(link: LocalPath): void {
  closeSync(openSync(link, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY))
}

function splitReal(at: LocalPath): { base: LocalPath; name: string } {
  const real = realpathSync(at, { encoding: 'buffer' })
  const slash = real.lastIndexOf(SLASH)
  return { base: real.subarray(0, slash), name: textOfPath(real.subarray(slash + 1)) }
}

/** Looks at what has the name now, and follows links: whoever types a name means what is behind it. Throws `Refused`. */
export function findTarget(base: LocalPath, name: string): NamedTarget {
  const at = inside(base, name)
  const own = lstatSync(at, { throwIfNoEntry: false })
  if (own === undefined) return { is: 'file', base, name }
  const stat = statSync(at, { throwIfNoEntry: false })
  if (stat === undefined) throw new Refused('it is a link to nothing')
  if (stat.isDirectory()) throw new Refused('a folder is in its place')
  const isLink = own.isSymbolicLink()
  if (!stat.isFile() || (isLink && OF_SYSTEM.test(base.toString()))) {
    if (stat.isSocket()) throw new Refused('a socket is in its place')
    return { is: 'sink', at, isPipe: stat.isFIFO() }
  }
  if (!isLink) return { is: 'file', base, name }
  checkWritable(at)
  return { is: 'file', ...splitReal(at) }
}
