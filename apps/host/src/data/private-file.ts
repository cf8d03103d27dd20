import {
  chmodSync,
  closeSync,
  fsyncSync,
  lchownSync,
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

/** Creates a folder that only this user can enter, or makes an existing one private. Throws for another user's folder. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new SandwireError('forbidden', `Cannot use "${folder}": not a folder of this user`)
  if ((found.mode & OTHERS) !== 0) chmodSync(folder, 0o700)
}

/** Like `makePrivateFolder`, but a group can use the files in it whose names it knows. */
export function makeGroupFolder(folder: string, gid: number): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new SandwireError('forbidden', `Cannot use "${folder}": not a folder of this user`)
  lchownSync(folder, found.uid, gid)
  chmodSync(folder, 0o710)
}

/** Lets a group connect to a socket, in a folder that only this user can change. */
export function giveSocket(socket: string, uid: number, gid: number): void {
  lchownSync(socket, uid, gid)
  chmodSync(socket, 0o660)
}

/** Replaces a file atomically: readers see the old or the new content, also after a power failure. */
export function writePrivateFile(file: string, content: string | Uint8Array): void {
  const temporary = temporaryName(file)
  rmSync(temporary, { force: true })
  const fd = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(fd, content)
    fsyncSync(fd)
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

/** Content of a file; undefined when missing. Throws when other users can read or change it. */
export function readPrivateFile(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (!found.isFile() || found.uid !== process.getuid?.() || (found.mode & OTHERS) !== 0)
    throw new SandwireError(
      'forbidden',
      `Cannot trust "${file}": it must belong to this user and be private (chmod 600)`,
    )
  return readFileSync(file, 'utf8')
}

/** Reads a private file, or creates it. */
export function readOrCreate(file: string, make: () => string): string {
  const found = readPrivateFile(file)
  if (found !== undefined) return found
  const text = make()
  makePrivateFolder(path.dirname(file))
  writePrivateFile(file, text)
  return text
}

const UNFINISHED = /\.([0-9]{1,10})\.new$/

/** Temporary name for a file that is renamed when complete. It contains the pid, so that leftovers of dead processes are recognized. */
export function temporaryName(file: string): string {
  return `${file}.${process.pid}.new`
}

/** Removes temporary files of dead processes. Called at startup, before this process creates any. */
export function removeTemporaryFiles(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = Number(UNFINISHED.exec(name)?.[1])
    const isLeft = pid === process.pid || (pid > 0 && identifyProcess(pid) === undefined)
    if (isLeft) rmSync(path.join(folder, name), { recursive: true, force: true })
  }
}
