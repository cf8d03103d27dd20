import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { readPrivateFile, serversFile } from '../server/known-servers.ts'
import { UsageError } from '../options/words.ts'
import { type Credential, decodeCredential } from './credential.ts'

type Environment = Readonly<Record<string, string | undefined>>

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const FOR_OTHERS = 0o077
const FILE_NAME = /^[0-9a-f]{64}\.json$/

/** Sign-ins of this user, one file for each server. */
export class CredentialStore {
  readonly #folder: string

  constructor(env: Environment) {
    this.#folder = path.join(path.dirname(serversFile(env)), 'sign-ins')
  }

  /** The file of an origin, whatever characters that has. */
  fileOf(origin: string): string {
    return path.join(this.#folder, `${createHash('sha256').update(origin).digest('hex')}.json`)
  }

  /** The sign-in at exactly this origin. Throws `UsageError` for a file that cannot be trusted. */
  read(origin: string): Credential | undefined {
    const file = this.fileOf(origin)
    const credential = readFile(file)
    // A file that was moved or copied here would send a secret to the wrong server.
    if (credential !== undefined && credential.origin !== origin)
      throw unusable(file, 'it is for another server')
    return credential
  }

  /** The origins that somebody signed in to; files that are not understood are left out. */
  origins(): readonly string[] {
    let names: string[]
    try {
      names = readdirSync(this.#folder).filter((name) => FILE_NAME.test(name))
    } catch {
      // No folder: nobody signed in anywhere.
      return []
    }
    return names.toSorted().flatMap((name) => {
      const found = readPrivateFile(path.join(this.#folder, name), FOR_OTHERS)
      const origin = found.is === 'read' ? decodeCredential(found.text)?.origin : undefined
      return origin === undefined || path.basename(this.fileOf(origin)) !== name ? [] : [origin]
    })
  }

  /** Replaces the sign-in at an origin; whoever reads sees the old one or the new one, whole. */
  write(credential: Credential): void {
    this.prepare()
    const file = this.fileOf(credential.origin)
    const temporary = `${file}.${randomBytes(8).toString('hex')}`
    try {
      const fd = openSync(temporary, 'wx', FILE_MODE)
      try {
        writeFileSync(fd, `${JSON.stringify(credential)}\n`)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      renameSync(temporary, file)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
    syncFolder(this.#folder)
  }

  /** Forgets the sign-in at an origin. */
  remove(origin: string): void {
    rmSync(this.fileOf(origin), { force: true })
  }

  /** Makes the folder, for this user only. Throws `UsageError` when it is somebody else's. */
  prepare(): void {
    mkdirSync(this.#folder, { recursive: true, mode: FOLDER_MODE })
    const stat = lstatSync(this.#folder)
    const self = process.getuid?.()
    if (!stat.isDirectory()) throw unusable(this.#folder, 'it is not a folder')
    if (self !== undefined && stat.uid !== self) throw unusable(this.#folder, 'it belongs to another user')
    if ((stat.mode & FOR_OTHERS) !== 0) chmodSync(this.#folder, FOLDER_MODE)
  }
}

function readFile(file: string): Credential | undefined {
  const found = readPrivateFile(file, FOR_OTHERS)
  if (found.is === 'absent') return undefined
  if (found.is === 'refused') throw unusable(file, found.why)
  const credential = decodeCredential(found.text)
  if (credential === undefined) throw unusable(file, 'its content is not understood')
  return credential
}

function unusable(file: string, why: string): UsageError {
  return new UsageError(
    `Cannot use the sign-in in "${file}": ${why}`,
    'remove it, then sign in again: sbx-stdio login',
  )
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
