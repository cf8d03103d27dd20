import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TarBuffer, type TarEntry } from '@sandwire/tar'
import { FilesThread } from '../thread/files-thread.ts'

/** A workspace, with a file beside it that must not be touched. */
export class Fixture implements Disposable {
  readonly files: FilesThread
  readonly root: string
  readonly #outer: string

  /** `user`: the user that files are accessed as; default: the test's own. */
  constructor(user?: { readonly uid: number; readonly gid: number }) {
    this.#outer = mkdtempSync(join(tmpdir(), 'sandwire-transfer-'))
    this.root = join(this.#outer, 'workspace')
    mkdirSync(this.root)
    if (user !== undefined) chmodSync(this.#outer, 0o755)
    writeFileSync(join(this.#outer, 'outside'), 'untouched')
    this.files = new FilesThread({
      createWorker: () => new Worker(new URL('../thread/files-worker.ts', import.meta.url).href),
      setUp: { root: this.root, umask: 0o022, user },
    })
  }

  /** Absolute path of a file in the workspace. */
  at(path: string): string {
    return join(this.root, path)
  }

  /** True when nothing outside was created, changed or removed. */
  get isOutsideUntouched(): boolean {
    const names = readdirSync(this.#outer).toSorted()
    return (
      names.join() === 'outside,workspace' &&
      readFileSync(join(this.#outer, 'outside'), 'utf8') === 'untouched'
    )
  }

  /** Temporary names anywhere in the workspace. */
  get unfinished(): readonly string[] {
    const found = Bun.spawnSync(['find', this.root, '-name', '.sandwire-*']).stdout.toString()
    return found.split('\n').filter((path) => path !== '')
  }

  has(path: string): boolean {
    return existsSync(this.at(path))
  }

  [Symbol.dispose](): void {
    this.files.stop()
    rmSync(this.#outer, { recursive: true, force: true })
  }
}

/** An archive entry and its bytes. */
export type Packed = Partial<TarEntry> & {
  readonly path: string
  readonly text?: string
  readonly type?: string
}

/** Packs entries without validating them. `type` sets a type flag that the writer does not support. */
export function archiveOf(entries: readonly Packed[]): Uint8Array {
  const parts = entries.flatMap(({ text = '', type, ...entry }) => {
    const bytes = new TextEncoder().encode(text)
    const { kind = 'file', ...rest } = entry
    const facts = { mode: 0o644, mtimeNs: '1700000000123456000', sizeBytes: bytes.length, ...rest }
    const archive = new TarBuffer()
    archive.entry({ ...facts, kind: kind === 'special' ? 'file' : kind })
    const head = archive.take()
    archive.content(bytes)
    return [type === undefined ? head : withType(head, type), archive.take()]
  })
  const end = new TarBuffer()
  end.end()
  return Buffer.concat([...parts, end.take()])
}

/** The last block is the entry's own header. */
function withType(head: Uint8Array, type: string): Uint8Array {
  const changed = head.slice()
  changed.subarray(-512)[156] = type.charCodeAt(0)
  mendChecksums(changed)
  return changed
}

/** Recomputes the checksum of every header. */
export function mendChecksums(archive: Uint8Array): void {
  for (let from = 0; from + 512 <= archive.length; from += 512) {
    const block = archive.subarray(from, from + 512)
    if (Buffer.from(block.subarray(257, 262)).toString() !== 'ustar') continue
    block.fill(0x20, 148, 156)
    const sum = block.reduce((total, byte) => total + byte, 0)
    block.set(new TextEncoder().encode(`${sum.toString(8).padStart(6, '0')}\0 `), 148)
  }
}

/** Yields bytes in slices. */
export async function* slices(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) {
    await Promise.resolve()
    yield bytes.subarray(at, at + size)
  }
}
