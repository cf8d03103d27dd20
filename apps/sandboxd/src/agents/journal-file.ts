import { closeSync, fdatasync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import type { NumberedEvent, RunEvent } from '@sandwire/agent'

/** From a write to its fdatasync. A crash of the machine loses at most this much. */
const SYNC_MS = 40
/** Entries between two remembered offsets. */
const INDEX_STEP = 64
/** Largest journal. After that only events without which a run cannot be understood are stored. */
const MAX_BYTES = 64 * 1024 * 1024
const ESSENTIAL: ReadonlySet<RunEvent['type']> = new Set(['result', 'complete', 'awaiting_input', 'status'])
/** Entries that are held in memory while the disk refuses them. */
const MAX_HELD = 4_096
const READ_BYTES = 256 * 1024

/** One entry as it is stored and sent: a line of JSON without the line feed. */
export interface JournalEntry {
  readonly seq: number
  readonly type: RunEvent['type']
  readonly json: string
}

/**
 * The events of one run, in a file of sandboxd: a line of JSON per event, numbered from 1 without holes. Written at once and
 * flushed to the disk a little later.
 */
export class JournalFile implements Disposable {
  readonly #fd: number
  /** Offsets of entries 1, 1 + INDEX_STEP, … */
  readonly #offsets: number[] = []
  #bytes = 0
  #lastSeq = 0
  /** Lines that could not be written yet, in order. */
  readonly #held: string[] = []
  #isFull = false
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

  /** Stores an event; undefined when the journal is full and can do without it. */
  append(event: RunEvent, atMs: number): JournalEntry | undefined {
    if (this.#isClosed || (this.#isFull && !ESSENTIAL.has(event.type))) return undefined
    const seq = this.#lastSeq + 1
    const entry: NumberedEvent = { seq, atMs, event }
    const json = JSON.stringify(entry)
    this.#lastSeq = seq
    this.#held.push(`${json}\n`)
    this.#write()
    if (this.#bytes > MAX_BYTES || this.#held.length > MAX_HELD) this.#isFull = true
    return { seq, type: event.type, json }
  }

  /** True after events were left out. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Entries after a sequence number, at most so many and about so many bytes; at least one if there is one. */
  read(after: number, maxEntries: number, maxBytes: number): readonly JournalEntry[] {
    const entries: JournalEntry[] = []
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

function parseEntry(json: string): JournalEntry | undefined {
  try {
    const { seq, event } = JSON.parse(json) as NumberedEvent
    return typeof seq === 'number' && typeof event.type === 'string'
      ? { seq, type: event.type, json }
      : undefined
  } catch {
    // Cut off by a crash.
    return undefined
  }
}
