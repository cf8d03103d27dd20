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
import { UsageError } from '../errors/errors.ts'
import { type Credential, decodeCredential } from './credential.ts'

type Environment = Readonly<Record<string, string | undefined>>

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const FOR_OTHERS = 0o077
const FILE_NAME = /^[0-9a-f]{64}\.json$/

/** Stored sign-ins of this user, one file per server. */
export class CredentialStore {
  readonly #folder: string

  constructor(env: Environment) {
    this.#folder = path.join(path.dirname(serversFile(env)), 'sign-ins')
  }

  /** The file for an origin. */
  fileOf(origin: string): string {
    return path.join(this.#folder, `${createHash('sha256').update(origin).digest('hex')}.json`)
  }

  /** The sign-in for exactly this origin. Throws `UsageError` for a file that cannot be trusted. */
  read(origin: string): Credential | undefined {
    const file = this.fileOf(origin)
    const credential = readFile(file)
    // A moved or copied file would send a secret to the wrong server.
    if (credential !== undefined && credential.origin !== origin)
      throw unusable(file, 'it is for another server')
    return credential
  }

  /** Origins with a stored sign-in; invalid files are skipped. */
  origins(): readonly string[] {
    let names: string[]
    try {
      names = readdirSync(this.#folder).filter((name) => FILE_NAME.test(name))
    } catch {
      // No folder: there are no sign-ins.
      return []
    }
    return names.toSorted().flatMap((name) => {
      const found = readPrivateFile(path.join(this.#folder, name), FOR_OTHERS)
      const origin = found.kind === 'read' ? decodeCredential(found.text)?.origin : undefined
      return origin === undefined || path.basename(this.fileOf(origin)) !== name ? [] : [origin]
    })
  }

  /** Replaces the sign-in of an origin atomically. */
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

  /** Removes the sign-in of an origin. */
  remove(origin: string): void {
    rmSync(this.fileOf(origin), { force: true })
  }

  /** Creates the folder, for this user only. Throws `UsageError` if it belongs to another user. */
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
  if (found.kind === 'absent') return undefined
  if (found.kind === 'refused') throw unusable(file, found.reason)
  const credential = decodeCredential(found.text)
  if (credential === undefined) throw unusable(file, 'it has invalid content')
  return credential
}

function unusable(file: string, reason: string): UsageError {
  return new UsageError(
    `Cannot use the sign-in in "${file}": ${reason}`,
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
