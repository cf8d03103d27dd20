import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { BLOCK_BYTES, paddingOf, type TarEntry, type TarKind, type TarNote } from './entry.ts'
import { type HeaderBlock, readHeader } from './header-block.ts'
import { nanosecondsOf, readSeconds } from './nanoseconds.ts'
import { type PaxRecords, readRecords } from './pax-records.ts'
import { NOTE_MARK } from './tar-buffer.ts'

/** Longest extended header: more than two paths of maximum length. */
export const MAX_EXTENDED_BYTES = 64 * 1024
/** Extended headers that may come before one entry; programs write up to four. */
const MAX_EXTENDED_IN_A_ROW = 16

export type TarEvent =
  | { readonly kind: 'entry'; readonly entry: TarEntry }
  /** The next bytes of the entry; a view of the pushed bytes. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** The entry is complete. */
  | { readonly kind: 'complete' }
  | { readonly kind: 'note'; readonly note: TarNote }
  | { readonly kind: 'end' }

type State =
  | { readonly kind: 'header' }
  /** Collects the body of an extended header. */
  | { readonly kind: 'extended'; readonly type: string; readonly sizeBytes: number }
  | { readonly kind: 'bytes'; leftBytes: number; readonly paddingBytes: number }
  | { readonly kind: 'padding'; leftBytes: number }
  | { readonly kind: 'ended' }

/** Values for the next entry from extended headers. */
interface Extended {
  count: number
  records: PaxRecords
  path: Uint8Array | undefined
  target: Uint8Array | undefined
}

const KINDS: Readonly<Record<string, TarKind>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard-link',
  '2': 'link',
  '5': 'folder',
}
/** GNU types whose bytes are not the file's content, or that continue in another archive. */
const UNREADABLE = new Set(['S', 'M', 'D', 'N'])
const SLASH = 0x2f

function refuse(why: string): never {
  throw new SandwireError('bad_request', `Cannot read the archive: ${why}`)
}

const nothingExtended = (): Extended => ({ count: 0, records: new Map(), path: undefined, target: undefined })

function upToNul(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(0)
  return end < 0 ? bytes : bytes.subarray(0, end)
}

function decodeText(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

/**
 * Reads an archive incrementally: ustar with POSIX extended headers or GNU long names. Buffers at most one block and one
 * extended header. Throws only `bad_request`, for any input.
 */
export class TarReader {
  #state: State = { kind: 'header' }
  /** Bytes of an incomplete block or extended header. */
  #kept: Uint8Array = new Uint8Array(0)
  #keptBytes = 0
  #extended = nothingExtended()

  /** The input has ended. Throws when the archive is incomplete. */
  end(): void {
    if (this.#state.kind !== 'ended') refuse('it ends too early')
  }

  /** Parses the next bytes and returns their events. Views of the bytes are valid until the next push. */
  push(chunk: Uint8Array): readonly TarEvent[] {
    const events: TarEvent[] = []
    let rest = chunk
    while (rest.length > 0 && this.#state.kind !== 'ended') {
      const state = this.#state
      if (state.kind === 'bytes') {
        const bytes = rest.subarray(0, state.leftBytes)
        rest = rest.subarray(bytes.length)
        state.leftBytes -= bytes.length
        events.push({ kind: 'bytes', bytes })
        if (state.leftBytes === 0) this.#finish(state.paddingBytes, events)
      } else if (state.kind === 'padding') {
        const skipped = Math.min(rest.length, state.leftBytes)
        rest = rest.subarray(skipped)
        state.leftBytes -= skipped
        if (state.leftBytes === 0) this.#state = { kind: 'header' }
      } else {
        const needBytes = state.kind === 'header' ? BLOCK_BYTES : state.sizeBytes + paddingOf(state.sizeBytes)
        const { whole, taken } = this.#collect(rest, needBytes)
        rest = rest.subarray(taken)
        if (whole === undefined) continue
        if (state.kind === 'header') this.#header(whole, events)
        else this.#extend(state.type, whole.subarray(0, state.sizeBytes), events)
      }
    }
    return events
  }

  #collect(rest: Uint8Array, needBytes: number): { whole: Uint8Array | undefined; taken: number } {
    if (this.#keptBytes === 0 && rest.length >= needBytes)
      return { whole: rest.subarray(0, needBytes), taken: needBytes }
    if (this.#keptBytes === 0) this.#kept = new Uint8Array(needBytes)
    const taken = Math.min(rest.length, needBytes - this.#keptBytes)
    this.#kept.set(rest.subarray(0, taken), this.#keptBytes)
    this.#keptBytes += taken
    if (this.#keptBytes < needBytes) return { whole: undefined, taken }
    this.#keptBytes = 0
    return { whole: this.#kept, taken }
  }

  #finish(paddingBytes: number, events: TarEvent[]): void {
    this.#state = paddingBytes === 0 ? { kind: 'header' } : { kind: 'padding', leftBytes: paddingBytes }
    events.push({ kind: 'complete' })
  }

  #header(block: Uint8Array, events: TarEvent[]): void {
    if (block[0] === 0 && block.every((byte) => byte === 0)) {
      this.#state = { kind: 'ended' }
      events.push({ kind: 'end' })
      return
    }
    const header = readHeader(block) ?? refuse('a header is damaged')
    if ('xgXLKV'.includes(header.type)) {
      this.#beginExtended(header)
      return
    }
    if (UNREADABLE.has(header.type)) refuse('sparse files and archives in parts are not supported')
    const entry = this.#entryOf(header)
    this.#extended = nothingExtended()
    events.push({ kind: 'entry', entry })
    const size = entry.kind === 'file' || entry.kind === 'special' ? entry.sizeBytes : 0
    if (size > 0) this.#state = { kind: 'bytes', leftBytes: size, paddingBytes: paddingOf(size) }
    else this.#finish(0, events)
  }

  #beginExtended({ type, sizeBytes }: HeaderBlock): void {
    if (sizeBytes > MAX_EXTENDED_BYTES) refuse(`an extended header is over ${MAX_EXTENDED_BYTES} bytes`)
    this.#extended.count += 1
    if (this.#extended.count > MAX_EXTENDED_IN_A_ROW) refuse('too many extended headers in a row')
    if (sizeBytes > 0) this.#state = { kind: 'extended', type, sizeBytes }
  }

  #extend(type: string, body: Uint8Array, events: TarEvent[]): void {
    this.#state = { kind: 'header' }
    switch (type) {
      case 'L':
        this.#extended.path = upToNul(body).slice()
        return
      case 'K':
        this.#extended.target = upToNul(body).slice()
        return
      case 'x':
      case 'X':
        this.#extended.records = readRecords(body) ?? refuse('an extended header is malformed')
        if ([...this.#extended.records.keys()].some((name) => name.startsWith('GNU.sparse.')))
          refuse('sparse files are not supported')
        return
      case 'g': {
        const note = readNote(readRecords(body) ?? refuse('an extended header is malformed'))
        // A note does not apply to the next entry.
        if (note !== undefined) {
          this.#extended.count = 0
          events.push({ kind: 'note', note })
        }
        return
      }
      default:
        // A volume label does not describe files.
        return
    }
  }

  #entryOf(header: HeaderBlock): TarEntry {
    const { records, path, target } = this.#extended
    const name = records.get('path') ?? path ?? header.name
    const isOldFolder = KINDS[header.type] === 'file' && name.at(-1) === SLASH
    const kind = isOldFolder ? 'folder' : (KINDS[header.type] ?? 'special')
    const linked = records.get('linkpath') ?? target ?? header.target
    return {
      path: pathFromBytes(name),
      kind,
      // Links, folders and devices have no content, whatever their header says.
      sizeBytes: kind === 'file' || !'123456'.includes(header.type) ? this.#sizeOf(header) : 0,
      mode: header.mode & 0o7777,
      mtimeNs: this.#mtimeOf(header),
      ...(kind === 'link' || kind === 'hard-link' ? { target: pathFromBytes(linked) } : {}),
    }
  }

  #sizeOf({ sizeBytes }: HeaderBlock): number {
    const record = this.#extended.records.get('size')
    if (record === undefined) return sizeBytes
    const text = decodeText(record)
    const size = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
    return Number.isSafeInteger(size) ? size : refuse('a size is malformed')
  }

  #mtimeOf({ mtimeSeconds }: HeaderBlock): string {
    const record = this.#extended.records.get('mtime')
    if (record === undefined) return nanosecondsOf(mtimeSeconds)
    return readSeconds(decodeText(record)) ?? refuse('a time is malformed')
  }
}

function readNote(records: PaxRecords): TarNote | undefined {
  const comment = records.get('comment')
  if (comment === undefined) return undefined
  const text = pathFromBytes(comment)
  const [, code, path] = /^([a-z_]{1,40}) (.*)$/s.exec(text.slice(NOTE_MARK.length)) ?? []
  return !text.startsWith(NOTE_MARK) || code === undefined || path === undefined ? undefined : { code, path }
}
