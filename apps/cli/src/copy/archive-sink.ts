import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { readArchivePath, type TarEntry, type TarEvent, type TarNote, TarReader } from '@sandwire/tar'
import type { CopyReport } from './progress.ts'
import { diskFullError } from './location.ts'
import { type PendingFile, type LocalFolder, WriteRefusedError } from './local-folder.ts'
import { describeSystemError, isDiskFull } from './local-entries.ts'

/** A file that is being received. */
interface PendingEntry {
  readonly entry: TarEntry
  readonly parts: readonly string[]
  pendingFile: PendingFile
  received: number
}

/** Reasons for the notes of the sender. */
const NOTE_REASONS: Readonly<Record<string, string>> = {
  special_file: 'it is a special file',
  file_refused: 'permission denied in the sandbox',
  file_changed: 'it changed while it was read; copy it again',
  file_not_found: 'it was removed meanwhile',
  path_refused: 'its path is too deep or too long',
}

/** Longest path that can be sent as the resume point. */
const MAX_RESUME_PATH_CHARS = 4000

/** Writes the entries of an archive into a local folder, and tracks where to resume. */
export class ArchiveSink {
  readonly #folder: LocalFolder
  readonly #report: CopyReport
  #pending: PendingEntry | undefined
  /** The current entry, skipped or not. */
  #entry: TarEntry | undefined
  #last: string | undefined
  #completed = 0

  constructor(folder: LocalFolder, report: CopyReport) {
    this.#folder = folder
    this.#report = report
  }

  /** Path of the last entry that is complete or skipped. */
  get last(): string | undefined {
    return this.#last
  }

  /** Grows with received data. */
  get progress(): number {
    return this.#completed + (this.#pending?.received ?? 0)
  }

  get pending(): PendingEntry | undefined {
    return this.#pending
  }

  take(event: TarEvent): void {
    switch (event.kind) {
      case 'entry':
        this.#begin(event.entry)
        return
      case 'bytes':
        this.write(event.bytes)
        if (this.#pending !== undefined) this.#report.addBytes(event.bytes.length)
        return
      case 'complete':
        this.complete()
        return
      case 'note':
        this.#note(event.note)
        // A longer path cannot be sent as the resume point.
        if (event.note.path.length <= MAX_RESUME_PATH_CHARS) this.#last = event.note.path
        return
      case 'end':
        return
    }
  }

  /** Writes the next bytes of the pending file. */
  write(bytes: Uint8Array): void {
    const pending = this.#pending
    if (pending === undefined) return
    this.#attempt(pending.entry.path, () => pending.pendingFile.write(bytes))
    pending.received += bytes.length
  }

  complete(): void {
    const pending = this.#pending
    this.#pending = undefined
    if (pending !== undefined)
      this.#attempt(
        pending.entry.path,
        () => {
          pending.pendingFile.commit(pending.entry)
          this.#completed += pending.received
          this.#report.addEntries()
        },
        pending,
      )
    this.#completed += 1
    this.#last = this.#entry?.path ?? this.#last
  }

  /** Discards the pending file, which is sent again from the start. */
  discardPending(): void {
    if (this.#pending === undefined) return
    this.#report.addBytes(-this.#pending.received)
    this.#pending.pendingFile.discard()
    this.#pending = undefined
  }

  #begin(entry: TarEntry): void {
    this.#entry = entry
    this.#report.startEntry(entry.path)
    const parts = readArchivePath(entry.path)
    if ('refused' in parts) {
      this.#skip(entry.path, parts.refused)
      return
    }
    this.#attempt(entry.path, () => this.#make(entry, parts))
  }

  #make(entry: TarEntry, parts: readonly string[]): void {
    switch (entry.kind) {
      case 'file':
        this.#pending = { entry, parts, pendingFile: this.#folder.openFile(parts), received: 0 }
        return
      case 'folder':
        this.#folder.makeFolder(parts, entry)
        this.#report.addEntries()
        return
      case 'link':
        this.#folder.makeLink(parts, entry.target ?? '', entry.mtimeNs)
        this.#report.addEntries()
        return
      case 'hard-link':
        throw new WriteRefusedError('hard links are not supported')
      case 'special':
        throw new WriteRefusedError('it is a special file')
    }
  }

  /** Skips an entry that fails; a full disk ends the copy. */
  #attempt(path: string, action: () => void, pending = this.#pending): void {
    try {
      action()
    } catch (error) {
      pending?.pendingFile.discard()
      this.#pending = undefined
      if (isDiskFull(error)) throw diskFullError()
      this.#skip(path, error instanceof WriteRefusedError ? error.message : describeSystemError(error))
    }
  }

  #note({ code, path }: TarNote): void {
    // About the entry before it, which was copied.
    if (code === 'file_changed' && path === this.#last) this.#report.problems.addChanged(path)
    else this.#skip(path, noteReason(code))
  }

  #skip(path: string, reason: string): void {
    this.#report.problems.add(path, reason)
  }
}

function noteReason(code: string): string {
  if (Object.hasOwn(NOTE_REASONS, code)) return NOTE_REASONS[code] ?? code
  return isErrorCode(code) ? code.replaceAll('_', ' ') : 'the sandbox skipped it'
}

/** Reads an archive into a sink. Throws `link_lost` when it ends early. */
export async function readArchive(bytes: AsyncIterable<Uint8Array>, sink: ArchiveSink): Promise<void> {
  const reader = new TarReader()
  let isComplete = false
  for await (const chunk of bytes)
    for (const event of reader.push(chunk)) {
      isComplete ||= event.kind === 'end'
      sink.take(event)
    }
  if (!isComplete) throw new SandwireError('link_lost', 'The connection broke: the archive ended early')
}
