export { comparePaths, MAX_DEPTH, readArchivePath, staysBeneath } from './archive-path.ts'
export { paddingOf, type TarEntry, type TarKind, type TarNote } from './entry.ts'
export { type TarEvent, TarReader } from './tar-reader.ts'
export { TarBuffer, type WritableEntry } from './tar-buffer.ts'
