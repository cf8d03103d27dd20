import { cString, Descriptor, makeFolderAt, openAt } from './system-calls.ts'
import { EEXIST, ENOENT, O_DIRECTORY, O_NOFOLLOW, O_PATH } from './constants.ts'

/** Mode of created folders, less the umask. */
const FOLDER_MODE = 0o777

interface Step {
  readonly name: Uint8Array
  readonly folder: Descriptor
}

/**
 * Opens folders below a start folder, one at a time, and keeps the path to the current one open. It follows no link and accepts
 * no `..`, so it never leaves the start folder.
 */
export class FolderCursor implements Disposable {
  readonly #start: Descriptor
  #steps: Step[] = []

  /** Takes ownership of `start`. */
  constructor(start: Descriptor) {
    this.#start = start
  }

  /**
   * Opens the folder with these names below the start; returns its descriptor, which stays open until the next call, or a
   * negative errno.
   */
  enter(names: readonly Uint8Array[], makesMissing: boolean): number {
    const common = this.#common(names)
    for (const step of this.#steps.splice(common)) step.folder[Symbol.dispose]()
    for (const name of names.slice(common)) {
      const fd = this.#step(name, makesMissing)
      if (fd < 0) return fd
      this.#steps.push({ name, folder: new Descriptor(fd) })
    }
    return this.#here
  }

  [Symbol.dispose](): void {
    for (const step of this.#steps.splice(0)) step.folder[Symbol.dispose]()
    this.#start[Symbol.dispose]()
  }

  get #here(): number {
    return this.#steps.at(-1)?.folder.fd ?? this.#start.fd
  }

  /** Number of leading names that are open already. */
  #common(names: readonly Uint8Array[]): number {
    const differing = this.#steps.findIndex(
      (step, at) => Buffer.compare(step.name, names[at] ?? new Uint8Array(0)) !== 0,
    )
    return differing < 0 ? this.#steps.length : differing
  }

  #step(bytes: Uint8Array, makesMissing: boolean): number {
    const here = this.#here
    const name = cString(bytes)
    const flags = O_PATH | O_DIRECTORY | O_NOFOLLOW
    const fd = openAt(here, name, flags)
    if (fd !== -ENOENT || !makesMissing) return fd
    const made = makeFolderAt(here, name, FOLDER_MODE)
    return made < 0 && made !== -EEXIST ? made : openAt(here, name, flags)
  }
}
