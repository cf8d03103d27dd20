import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isStoreKey } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

const MAX_LISTED = 1_000
const TEMPORARY = 'temporary'
const MAX_TRIES = 5

export interface StoredFacts {
  readonly sizeBytes: number
  readonly sha256: string
}

/** Objects as files below one folder. A file appears under its key when it is whole and on the disk, and never changes. */
export class FolderStore {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Removes what a crash left behind. */
  async open(): Promise<void> {
    await rm(join(this.#folder, TEMPORARY), { recursive: true, force: true })
    await mkdir(join(this.#folder, TEMPORARY), { recursive: true, mode: 0o700 })
  }

  /** Throws `version_damaged` when the bytes are not those that were announced. */
  async put(key: string, body: AsyncIterable<Uint8Array>, facts: StoredFacts): Promise<void> {
    const path = this.#path(key)
    const temporary = join(this.#folder, TEMPORARY, randomBytes(16).toString('hex'))
    try {
      await this.#write(temporary, body, facts)
      await this.#place(temporary, path, facts)
      await syncFolder(dirname(path))
    } finally {
      await rm(temporary, { force: true })
    }
  }

  /** Gives a complete file its name. */
  async #place(temporary: string, path: string, facts: StoredFacts): Promise<void> {
    // Unlike a rename, a link fails when the key exists. The folder may be removed with its last object in between.
    for (let tries = 1; ; tries += 1) {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      try {
        return await link(temporary, path)
      } catch (error) {
        if (codeOf(error) === 'ENOENT' && tries < MAX_TRIES) continue
        return this.#acceptExisting(path, facts, error)
      }
    }
  }

  async #write(path: string, body: AsyncIterable<Uint8Array>, facts: StoredFacts): Promise<void> {
    await using file = await open(path, 'wx', 0o600)
    const hasher = new Bun.CryptoHasher('sha256')
    let sizeBytes = 0
    for await (const bytes of body) {
      sizeBytes += bytes.byteLength
      if (sizeBytes > facts.sizeBytes) break
      hasher.update(bytes)
      await file.write(bytes)
    }
    if (sizeBytes !== facts.sizeBytes || hasher.digest('hex') !== facts.sha256)
      throw new SandwireError('version_damaged', 'Cannot store the object: its content is not as announced')
    await file.sync()
  }

  /** A repeated request finds its own object; the same key with other content is refused. */
  async #acceptExisting(path: string, { sizeBytes, sha256 }: StoredFacts, error: unknown): Promise<void> {
    if (codeOf(error) !== 'EEXIST') throw error
    const hasher = new Bun.CryptoHasher('sha256')
    for await (const bytes of Bun.file(path).stream()) hasher.update(bytes)
    if (Bun.file(path).size === sizeBytes && hasher.digest('hex') === sha256) return
    throw new SandwireError('conflict', 'Cannot store the object: the key has other content')
  }

  /** The file; undefined when there is none. */
  async get(key: string): Promise<Bun.BunFile | undefined> {
    const file = Bun.file(this.#path(key))
    return (await file.exists()) ? file : undefined
  }

  async delete(key: string): Promise<void> {
    const path = this.#path(key)
    await rm(path, { force: true })
    // Fails while the folder has other objects.
    await rmdir(dirname(path)).catch(() => undefined)
  }

  /** Keys in the order of their bytes. The prefix is a folder. */
  async list(prefix: string, after: string): Promise<readonly string[]> {
    const folder = prefix.replace(/\/+$/, '')
    const names = await readdir(join(this.#folder, ...safeNames(folder)), { recursive: true }).catch(() => [])
    const keys = names
      .map((name) => `${folder}/${name}`)
      .filter((key) => isStoreKey(key) && key > after)
      .toSorted()
    const files: string[] = []
    for (const key of keys) {
      if (files.length === MAX_LISTED) break
      if ((await stat(this.#path(key))).isFile()) files.push(key)
    }
    return files
  }

  #path(key: string): string {
    if (!isStoreKey(key)) throw new SandwireError('bad_request', 'Cannot use the key: it is malformed')
    return join(this.#folder, key)
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function safeNames(folder: string): readonly string[] {
  const names = folder.split('/')
  if (names.every((name) => /^[a-z0-9]{1,64}$/.test(name))) return names
  throw new SandwireError('bad_request', 'Cannot list the keys: the prefix is malformed')
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  // Some file systems cannot sync folders; the file itself is synced.
  await folder.sync().catch(() => undefined)
}
