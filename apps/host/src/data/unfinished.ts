import { readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { identifyProcess } from './process-identity.ts'

const UNFINISHED = /\.([0-9]{1,10})\.new$/

/** Where something is written until it is whole and takes its place. It names the process, so that what a dead one left is known. */
export function unfinishedName(place: string): string {
  return `${place}.${process.pid}.new`
}

/** Removes what processes that are gone have not finished. For the start, when this one has not begun anything. */
export function removeUnfinished(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = Number(UNFINISHED.exec(name)?.[1])
    const isLeft = pid === process.pid || (pid > 0 && identifyProcess(pid) === undefined)
    if (isLeft) rmSync(path.join(folder, name), { recursive: true, force: true })
  }
}
