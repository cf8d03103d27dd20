import { lstatSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { isSandboxId } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { makePrivateFolder } from '../data/private-file.ts'
import { filesIn, type SandboxFiles } from '../supervisor/files.ts'

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

  /** Throws for anything but a sandbox id, so that no other text becomes a path. */
  filesOf(id: string): SandboxFiles {
    if (!isSandboxId(id))
      throw new SandwireError('bad_request', 'Cannot find the sandbox: that is no sandbox id')
    return filesIn(path.join(this.#folder, id))
  }

  /** Where the supervisor of a sandbox takes orders. Short, because socket addresses are. */
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

  /** Removes the control socket of a supervisor that is gone. */
  removeSocket(id: string): void {
    rmSync(this.controlSocketOf(id), { force: true })
  }

  remove(id: string): void {
    this.removeSocket(id)
    rmSync(this.filesOf(id).folder, { recursive: true, force: true })
  }
}
