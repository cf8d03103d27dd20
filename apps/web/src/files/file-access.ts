import { type FileVersion, type OutgrownFile, readFile, statFile, writeFile } from '../api/workspace.ts'

export type { OutgrownFile }

export function isOutgrown(version: unknown): version is OutgrownFile {
  return typeof version === 'object' && version !== null && 'sizeBytes' in version
}

/** What a file needs of the server. */
export interface FileAccess {
  stat(): Promise<{ readonly size: number; readonly etag: string }>
  /** Reads no further than the headers when the file is larger than `canOpen` accepts. */
  read(canOpen: (sizeBytes: number) => boolean): Promise<FileVersion | OutgrownFile>
  write(text: string, condition: { readonly etag: string } | 'new' | 'any'): Promise<string>
}

export function accessTo(sandbox: string, path: string): FileAccess {
  return {
    stat: () => statFile(sandbox, path),
    read: (canOpen) => readFile(sandbox, path, canOpen),
    write: (text, condition) => writeFile(sandbox, path, text, condition),
  }
}
