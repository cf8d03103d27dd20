import type { TarNote } from './entry.ts'
import { TarBuffer, type WritableEntry } from './tar-buffer.ts'

function written(write: (archive: TarBuffer) => void): Uint8Array {
  const archive = new TarBuffer()
  write(archive)
  return archive.take()
}

export const TAR_END: Uint8Array = written((archive) => archive.end())

export function writeEntry(entry: WritableEntry): Uint8Array {
  return written((archive) => archive.entry(entry))
}

export function writeNote(note: TarNote): Uint8Array {
  return written((archive) => archive.note(note))
}
