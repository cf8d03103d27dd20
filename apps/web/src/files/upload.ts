import { workspaceUrl } from '../api/workspace.ts'

/** A file to upload and where it goes, from the folder that it was dropped on. */
export interface Dropped {
  readonly path: string
  readonly file: File
}

function readEntries(reader: FileSystemDirectoryReader): Promise<readonly FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject))
}

async function filesOf(entry: FileSystemEntry, folder: string): Promise<readonly Dropped[]> {
  const path = folder === '' ? entry.name : `${folder}/${entry.name}`
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    )
    return [{ path, file }]
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const found: Dropped[] = []
  // A reader gives some at a time, and none at the end.
  for (let entries = await readEntries(reader); entries.length > 0; entries = await readEntries(reader))
    for (const child of entries) for (const file of await filesOf(child, path)) found.push(file)
  return found
}

function alone(file: File | null): readonly Dropped[] {
  return file === null ? [] : [{ path: file.name, file }]
}

/** Everything that was dropped, folders with what is in them. It must be called while the drop is told. */
export async function readDropped(transfer: DataTransfer): Promise<readonly Dropped[]> {
  const items = [...transfer.items].filter(({ kind }) => kind === 'file')
  // Not every source of a drop has a file system behind it, and not every browser tells of items.
  if (items.length === 0) return [...transfer.files].flatMap(alone)
  const found = items.map(async (item) => {
    const entry = item.webkitGetAsEntry()
    return entry === null ? alone(item.getAsFile()) : filesOf(entry, '')
  })
  return (await Promise.all(found)).flat()
}

/** Where a folder or file comes from as a download: a folder comes as a tar archive. */
export function downloadUrl(sandbox: string, path: string, isFolder: boolean): string {
  return workspaceUrl(sandbox, isFolder ? 'archive' : 'file', { path })
}
