import { cString, Descriptor, makeFolderAt, openAt } from './system-calls.ts'
import { EEXIST, ENOENT, O_DIRECTORY, O_NOFOLLOW, O_PATH } from './constants.ts'

/** What folders on the way are made with, less the umask. */
const FOLDER_MODE = 0o777

interface Step {
  readonly name: Uint8Array
  readonly folder: Descriptor
}

/**
 * Goes from one folder to others below it, one after the other, and keeps open those on the way to the last one. No link is ever
 * followed, and none of the names may be `..`: so nothing outside the folder is reached, whatever is in it.
 */
export class Trail implements Disposable {
  readonly #start: Descriptor
  #steps: Step[] = []

  /** Closes `start` with everything else. */
  constructor(start: Descriptor) {
    this.#start = start
  }

  /** The open folder with these names below the start, or a negative errno. It stays open until the next call. */
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

  /** How many of the names the way leads along already. */
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
