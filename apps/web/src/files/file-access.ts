import { type FileVersion, readFile, statFile, writeFile } from '../api/workspace.ts'

/** What a file needs of the server. */
export interface FileAccess {
  stat(): Promise<{ readonly size: number; readonly etag: string }>
  read(): Promise<FileVersion>
  write(text: string, condition: { readonly etag: string } | 'new' | 'any'): Promise<string>
}

export function accessTo(sandbox: string, path: string): FileAccess {
  return {
    stat: () => statFile(sandbox, path),
    read: () => readFile(sandbox, path),
    write: (text, condition) => writeFile(sandbox, path, text, condition),
  }
}
