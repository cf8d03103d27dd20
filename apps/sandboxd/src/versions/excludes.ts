import ignore, { type Ignore } from 'ignore'
import { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } from '../workspace/beneath/constants.ts'
import { Descriptor, openAt, readFd } from '../workspace/beneath/system-calls.ts'
import { cName } from '../workspace/files/context.ts'

/** Lists what is not saved, in the syntax of `.gitignore`; it applies to the root that it is in. */
const IGNORE_FILE = '.sandwireignore'
const MAX_IGNORE_BYTES = 64 * 1024

/** Caches in the home folder: programs make them again. */
const HOME_CACHES = [
  '/.cache/',
  '/.npm/_cacache/',
  '/.npm/_logs/',
  '/.bun/install/cache/',
  '/.cargo/registry/',
  '/.local/share/Trash/',
]

/** What is not saved of a root. */
export class Excludes {
  readonly #root: string
  readonly #fd: number
  readonly #defaults: readonly string[]
  #text = ''
  #rules: Ignore | undefined

  constructor(root: string, fd: number) {
    this.#root = root
    this.#fd = fd
    this.#defaults = root === 'home' ? HOME_CACHES : []
    this.#rules = this.#parse('')
  }

  /** Reads the rules again; returns true when they have changed. */
  reload(): boolean {
    const text = readRules(this.#fd)
    if (text === this.#text) return false
    this.#text = text
    this.#rules = this.#parse(text)
    return true
  }

  /** Which names of a folder are not saved; undefined: none. */
  of(folder: string): ((name: string, isFolder: boolean) => boolean) | undefined {
    const rules = this.#rules
    if (rules === undefined) return undefined
    const above = folder === this.#root ? '' : `${folder.slice(this.#root.length + 1)}/`
    return (name, isFolder) => rules.ignores(`${above}${name}${isFolder ? '/' : ''}`)
  }

  #parse(text: string): Ignore | undefined {
    if (text === '' && this.#defaults.length === 0) return undefined
    return ignore({ allowRelativePaths: true })
      .add([...this.#defaults])
      .add(text)
  }
}

/** The file as characters of one byte, like the names that it is compared with; empty when there is none. */
function readRules(fd: number): string {
  const opened = openAt(fd, cName(IGNORE_FILE), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  if (opened < 0) return ''
  using file = new Descriptor(opened)
  const bytes = Buffer.alloc(MAX_IGNORE_BYTES)
  const size = readFd(file.fd, bytes)
  return size <= 0 ? '' : bytes.toString('latin1', 0, size)
}
