import { closeSync, fstatSync, lstatSync, openSync, readdirSync, readSync, rmSync } from 'node:fs'
import path from 'node:path'
import { isSandboxId } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { makePrivateFolder } from '../data/private-file.ts'
import { filesIn, type SandboxFiles } from '../supervisor/sandbox-files.ts'

/** The folders of the sandboxes of this machine. */
export class SandboxStore {
  readonly #folder: string
  readonly #controlFolder: string

  constructor(folder: string, controlFolder: string) {
    this.#folder = folder
    this.#controlFolder = controlFolder
    makePrivateFolder(folder)
    makePrivateFolder(controlFolder)
  }

  /** Throws for anything but a sandbox id, so that no other text is used in a path. */
  filesOf(id: string): SandboxFiles {
    if (!isSandboxId(id)) throw new SandwireError('bad_request', 'Cannot find the sandbox: not a sandbox id')
    return filesIn(path.join(this.#folder, id))
  }

  /** Control socket of a supervisor. */
  controlSocketOf(id: string): string {
    return path.join(this.#controlFolder, `${id}.sock`)
  }

  has(id: string): boolean {
    return lstatSync(this.filesOf(id).folder, { throwIfNoEntry: false }) !== undefined
  }

  list(): string[] {
    return readdirSync(this.#folder).filter(isSandboxId)
  }

  make(id: string): SandboxFiles {
    const files = this.filesOf(id)
    makePrivateFolder(files.folder)
    return files
  }

  /** Removes the control socket of a dead supervisor. */
  removeSocket(id: string): void {
    rmSync(this.controlSocketOf(id), { force: true })
  }

  remove(id: string): void {
    this.removeSocket(id)
    rmSync(this.filesOf(id).folder, { recursive: true, force: true })
  }
}

/** The last bytes of a file; empty when missing. */
function readEnd(file: string, maxBytes: number): Buffer {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch {
    // No log yet, or never rotated.
    return Buffer.alloc(0)
  }
  try {
    const { size } = fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, maxBytes))
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, size - bytes.length))
  } finally {
    closeSync(fd)
  }
}

/** The last whole lines of a log and its predecessor, at most `maxBytes`. */
export function readTail(file: string, maxBytes: number): string {
  // One more byte shows whether the first line is complete.
  const wanted = maxBytes + 1
  const newer = readEnd(file, wanted)
  const older = newer.length < wanted ? readEnd(`${file}.1`, wanted - newer.length) : Buffer.alloc(0)
  const bytes = Buffer.concat([older, newer])
  if (bytes.length <= maxBytes) return bytes.toString('utf8')
  return bytes.subarray(bytes.indexOf('\n') + 1).toString('utf8')
}
