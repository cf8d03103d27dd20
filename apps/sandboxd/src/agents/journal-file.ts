import { closeSync, fdatasync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'

/** From a write to its fdatasync. A crash of the machine loses at most this much. */
const SYNC_MS = 40
/** Entries between two remembered offsets. */
const INDEX_STEP = 64
/** Size beyond which the file counts as full. */
const MAX_BYTES = 64 * 1024 * 1024
/** Entries that are held in memory while the disk refuses them, before the file counts as full. */
const MAX_HELD = 4_096
const READ_BYTES = 256 * 1024

/** One entry as it is stored and sent: a line of JSON without the line feed. */
export interface StoredEntry {
  readonly seq: number
  /** Type of the event, or kind of the input. */
  readonly type: string
  readonly json: string
}

/** What is stored with a sequence number: an event, or an input of the driver. */
type Content = { readonly atMs: number } & (
  | { readonly event: { readonly type: string } }
  | { readonly kind: string }
)

/**
 * The journal of one run, or its events, in a file of sandboxd: a line of JSON per entry, numbered from 1 without holes. Written at
 * once and flushed to the disk a little later.
 */
export class JournalFile implements Disposable {
  readonly #fd: number
  /** Offsets of entries 1, 1 + INDEX_STEP, … */
  readonly #offsets: number[] = []
  #bytes = 0
  #lastSeq = 0
  /** Lines that could not be written yet, in order. */
  readonly #held: string[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false

  /** Opens or creates the file. What a crash left of the last line is removed. */
  constructor(file: string) {
    this.#fd = openSync(file, 'a+', 0o600)
    this.#scan()
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  append(content: Content): StoredEntry {
    const seq = this.#lastSeq + 1
    const json = JSON.stringify({ seq, ...content })
    this.#lastSeq = seq
    this.#held.push(`${json}\n`)
    if (!this.#isClosed) this.#write()
    return { seq, type: typeOf(content), json }
  }

  /** True when nothing but the essential should be added. */
  get isFull(): boolean {
    return this.#bytes > MAX_BYTES || this.#held.length > MAX_HELD
  }

  /** All entries, parsed. */
  *entries(): Generator<unknown> {
    for (const line of this.#linesFrom(1)) yield JSON.parse(line)
  }

  /** Entries after a sequence number, at most so many and about so many bytes; at least one if there is one. */
  read(after: number, maxEntries: number, maxBytes: number): readonly StoredEntry[] {
    const entries: StoredEntry[] = []
    let bytes = 0
    for (const line of this.#linesFrom(after + 1)) {
      const entry = parseEntry(line)
      if (entry === undefined || entry.seq <= after) continue
      entries.push(entry)
      bytes += line.length
      if (entries.length >= maxEntries || bytes >= maxBytes) break
    }
    return entries
  }

  /** Tries again what the disk refused, and flushes. */
  flush(): void {
    this.#write()
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    closeSync(this.#fd)
  }

  #write(): void {
    for (let line = this.#held[0]; line !== undefined; line = this.#held[0]) {
      const bytes = Buffer.from(line)
      const seq = this.#lastSeq - this.#held.length + 1
      try {
        const written = writeSync(this.#fd, bytes)
        // A disk that fills up takes a part; it is removed, because the whole line is written again.
        if (written < bytes.byteLength) {
          ftruncateSync(this.#fd, this.#bytes)
          return
        }
      } catch {
        // Stays in memory, from where it is read too, until the disk takes it.
        return
      }
      if ((seq - 1) % INDEX_STEP === 0) this.#offsets.push(this.#bytes)
      this.#bytes += bytes.byteLength
      this.#held.shift()
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (!this.#isClosed) fdatasync(this.#fd, () => undefined)
    }, SYNC_MS)
  }

  *#linesFrom(seq: number): Generator<string> {
    const step = Math.max(0, Math.min(Math.floor((seq - 1) / INDEX_STEP), this.#offsets.length - 1))
    yield* this.#readLines(this.#offsets[step] ?? this.#bytes)
    yield* this.#held.map((line) => line.slice(0, -1))
  }

  *#readLines(from: number): Generator<string> {
    let rest: Buffer = Buffer.alloc(0)
    for (let at = from; at < this.#bytes;) {
      const chunk = Buffer.alloc(Math.min(READ_BYTES, this.#bytes - at))
      const count = readSync(this.#fd, chunk, 0, chunk.byteLength, at)
      if (count <= 0) return
      at += count
      rest = Buffer.concat([rest, chunk.subarray(0, count)])
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        yield rest.toString('utf8', 0, end)
        rest = rest.subarray(end + 1)
      }
    }
  }

  /** Finds the entries of an earlier sandboxd; ends at the first line that is not the next entry. */
  #scan(): void {
    const size = fstatSync(this.#fd).size
    this.#bytes = size
    let offset = 0
    for (const line of this.#readLines(0)) {
      if (parseEntry(line)?.seq !== this.#lastSeq + 1) break
      if (this.#lastSeq % INDEX_STEP === 0) this.#offsets.push(offset)
      this.#lastSeq += 1
      offset += Buffer.byteLength(line) + 1
    }
    this.#bytes = offset
    if (size > offset) ftruncateSync(this.#fd, offset)
  }
}

function typeOf(content: Content): string {
  return 'kind' in content ? content.kind : content.event.type
}

function parseEntry(json: string): StoredEntry | undefined {
  try {
    const entry = JSON.parse(json) as Content & { readonly seq: unknown }
    const type: unknown = typeOf(entry)
    return typeof entry.seq === 'number' && typeof type === 'string'
      ? { seq: entry.seq, type, json }
      : undefined
  } catch {
    // Cut off by a crash.
    return undefined
  }
}
