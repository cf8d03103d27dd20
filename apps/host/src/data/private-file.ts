import {
  chmodSync,
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { identifyProcess } from './process-identity.ts'

const OTHERS = 0o077

/** Makes a folder that only this user can enter; one that exists is narrowed, unless it is somebody else's. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new SandwireError('forbidden', `Cannot use "${folder}": it is not a folder of this user`)
  if ((found.mode & OTHERS) !== 0) chmodSync(folder, 0o700)
}

/** Replaces a file as a whole: whoever reads sees the old text or the new one, also after a power cut. */
export function writePrivateFile(file: string, text: string): void {
  const fresh = temporaryName(file)
  rmSync(fresh, { force: true })
  const fd = openSync(fresh, 'wx', 0o600)
  try {
    writeFileSync(fd, text)
    fsyncSync(fd)
    renameSync(fresh, file)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

/** The text of a file, or undefined when there is none. Throws when others can read or change it. */
export function readPrivateFile(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (!found.isFile() || found.uid !== process.getuid?.() || (found.mode & OTHERS) !== 0)
    throw new SandwireError(
      'forbidden',
      `Cannot trust "${file}": it must be a file of this user that nobody else can open (chmod 600)`,
    )
  return readFileSync(file, 'utf8')
}

/** Reads a private file, or makes it. */
export function readOrCreate(file: string, make: () => string): string {
  const found = readPrivateFile(file)
  if (found !== undefined) return found
  const text = make()
  makePrivateFolder(path.dirname(file))
  writePrivateFile(file, text)
  return text
}

const UNFINISHED = /\.([0-9]{1,10})\.new$/

/** Where something is written until it is whole and takes its place. It names the process, so that what a dead one left is known. */
export function temporaryName(place: string): string {
  return `${place}.${process.pid}.new`
}

/** Removes what processes that are gone have not finished. For the start, when this one has not begun anything. */
export function removeTemporaryFiles(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = Number(UNFINISHED.exec(name)?.[1])
    const isLeft = pid === process.pid || (pid > 0 && identifyProcess(pid) === undefined)
    if (isLeft) rmSync(path.join(folder, name), { recursive: true, force: true })
  }
}
