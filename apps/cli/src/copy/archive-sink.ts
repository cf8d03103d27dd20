import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { readArchivePath, type TarEntry, type TarEvent, type TarNote, TarReader } from '@sandwire/tar'
import type { CopyReport } from './progress.ts'
import { diskFullError } from './location.ts'
import { type PendingFile, type LocalFolder, WriteRefusedError } from './local-folder.ts'
import { describeSystemError } from './local-entries.ts'

/** A file that is not complete. */
interface Pending {
  readonly entry: TarEntry
  readonly parts: readonly string[]
  pendingFile: PendingFile
  received: number
}

/** What a note of whoever packed means. */
const NOTES: Readonly<Record<string, string>> = {
  special_file: 'neither a file nor a folder',
  file_refused: 'its user may not read it',
  file_changed: 'it changed while it was read, so copy it again',
  file_not_found: 'it was removed meanwhile',
  path_refused: 'it is too deep, or its path too long',
}

const MAX_ASKED_CHARS = 4000

/** Puts the entries of an archive into a local folder, and remembers how far that is. */
export class ArchiveSink {
  readonly #folder: LocalFolder
  readonly #copying: CopyReport
  #pending: Pending | undefined
  /** The entry that is being read, kept or not. */
  #entry: TarEntry | undefined
  #last: string | undefined
  #completed = 0

  constructor(folder: LocalFolder, report: CopyReport) {
    this.#folder = folder
    this.#copying = report
  }

  /** The last entry that is complete, or was told to be left out, as the archive names it. */
  get last(): string | undefined {
    return this.#last
  }

  /** Grows with everything that arrives. */
  get progress(): number {
    return this.#completed + (this.#pending?.received ?? 0)
  }

  get pending(): Pending | undefined {
    return this.#pending
  }

  take(event: TarEvent): void {
    switch (event.is) {
      case 'entry':
        this.#begin(event.entry)
        return
      case 'bytes':
        this.write(event.bytes)
        if (this.#pending !== undefined) this.#copying.moved(event.bytes.length)
        return
      case 'complete':
        this.complete()
        return
      case 'note':
        this.#note(event.note)
        // A path that is too long to be there is too long to be asked for as well.
        if (event.note.path.length <= MAX_ASKED_CHARS) this.#last = event.note.path
        return
      case 'end':
        return
    }
  }

  /** Takes the next bytes of the file that is not complete. */
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
          this.#copying.done()
        },
        pending,
      )
    this.#completed += 1
    this.#last = this.#entry?.path ?? this.#last
  }

  /** The archive broke off, and the file that is not complete comes again from its beginning. */
  forget(): void {
    if (this.#pending === undefined) return
    this.#copying.moved(-this.#pending.received)
    this.#pending.pendingFile.discard()
    this.#pending = undefined
  }

  #begin(entry: TarEntry): void {
    this.#entry = entry
    this.#copying.at(entry.path)
    const parts = readArchivePath(entry.path)
    if ('refused' in parts) {
      this.#leaveOut(entry.path, parts.refused)
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
        this.#copying.done()
        return
      case 'link':
        this.#folder.makeLink(parts, entry.target ?? '', entry.mtimeNs)
        this.#copying.done()
        return
      case 'hard-link':
        throw new WriteRefusedError('a second name of a file is not taken')
      case 'special':
        throw new WriteRefusedError('neither a file nor a folder')
    }
  }

  /** What goes wrong with one entry leaves it out; a full disk ends everything. */
  #attempt(path: string, action: () => void, pending = this.#pending): void {
    try {
      action()
    } catch (error) {
      pending?.pendingFile.discard()
      this.#pending = undefined
      const why = error instanceof WriteRefusedError ? error.message : describeSystemError(error)
      if (why === 'no space is left') throw diskFullError()
      this.#leaveOut(path, why)
    }
  }

  #note({ code, path }: TarNote): void {
    // Of the entry before it, it says what became of that.
    if (code === 'file_changed' && path === this.#last) this.#copying.leftOut.addChanged(path)
    else this.#leaveOut(path, noteOf(code))
  }

  #leaveOut(path: string, why: string): void {
    this.#copying.leftOut.add(path, why)
  }
}

function noteOf(code: string): string {
  if (Object.hasOwn(NOTES, code)) return NOTES[code] ?? code
  return isErrorCode(code) ? code.replaceAll('_', ' ') : 'the sandbox left it out'
}

/** Reads an archive into a sink. Throws `link_lost` when it breaks off. */
export async function readArchive(bytes: AsyncIterable<Uint8Array>, sink: ArchiveSink): Promise<void> {
  const reader = new TarReader()
  let isComplete = false
  for await (const chunk of bytes)
    for (const event of reader.push(chunk)) {
      isComplete ||= event.is === 'end'
      sink.take(event)
    }
  if (!isComplete) throw new SandwireError('link_lost', 'The server cannot be reached: the archive broke off')
}
