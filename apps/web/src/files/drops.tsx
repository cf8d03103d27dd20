import { createStore, type Store } from '@sandwire/client'
import { type DragEvent as ReactDragEvent, type ReactElement, type ReactNode, useState } from 'react'
import { workspaceUrl } from '../api/workspace.ts'
import { canWork } from '../state/rights.ts'
import type { Workbench } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'

/** Data type of a dragged tree row. */
export const PATH_TYPE = 'application/x-sandwire-path'

/** Accepts files from the user's computer and rows of the tree. */
export function DropTarget({
  onDrop,
  children,
}: {
  readonly onDrop: (transfer: DataTransfer) => void
  readonly children: ReactNode
}): ReactElement {
  const [isOver, setOver] = useState(false)
  const isTaken = ({ dataTransfer: { types } }: ReactDragEvent): boolean =>
    types.includes('Files') || types.includes(PATH_TYPE)
  return (
    <div
      className={`drop-target ${isOver ? 'dropping' : ''}`}
      data-drop-target
      onDragOver={(event) => {
        if (!isTaken(event)) return
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      // A row may handle the drop for its folder.
      onDropCapture={() => setOver(false)}
      onDrop={(event) => {
        if (!isTaken(event)) return
        event.preventDefault()
        onDrop(event.dataTransfer)
      }}
    >
      {children}
    </div>
  )
}

/** Marks elements that handle dropped files; elsewhere the page does. */
const DROP_TARGET = '[data-drop-target]'
/** Where dropped text or a link is inserted. */
const EDITABLE = 'input, textarea, [contenteditable=true]'

/**
 * Handles files dropped outside a drop target. The browser would open them in place of the page, and an editor would
 * insert their text. They go to the workspace of the sandbox they were dropped on, after the usual upload dialog.
 */
export class PageDrops {
  readonly #workbench: Workbench
  readonly #files = createStore<readonly Dropped[]>([])

  constructor(workbench: Workbench) {
    this.#workbench = workbench
  }

  /** Dropped files that wait for the files panel. */
  get files(): Store<readonly Dropped[]> {
    return this.#files
  }

  take(): readonly Dropped[] {
    const files = this.#files.get()
    this.#files.set([])
    return files
  }

  listen(target: Window): void {
    target.addEventListener('dragover', (event) => this.#stopFiles(event), true)
    target.addEventListener(
      'drop',
      (event) => {
        if (this.#stopFiles(event)) void this.#receive(event)
      },
      true,
    )
    // In the bubble phase, after the element that knows the dragged type.
    const stopRest = (event: DragEvent): void => {
      if (event.defaultPrevented || isIn(event, EDITABLE)) return
      event.preventDefault()
      if (event.type === 'dragover' && event.dataTransfer !== null) event.dataTransfer.dropEffect = 'none'
    }
    target.addEventListener('dragover', stopRest)
    target.addEventListener('drop', stopRest)
  }

  #stopFiles(event: DragEvent): boolean {
    if (event.dataTransfer?.types.includes('Files') !== true || isIn(event, DROP_TARGET)) return false
    event.preventDefault()
    event.stopPropagation()
    return true
  }

  async #receive(event: DragEvent): Promise<void> {
    const { dataTransfer, target } = event
    if (dataTransfer === null) return
    const sandbox =
      target instanceof Element ? target.closest('[data-sandbox]')?.getAttribute('data-sandbox') : undefined
    const files = await this.#workbench.attempt(fileTexts.uploads.cannotRead, () => readDropped(dataTransfer))
    if (files === undefined || files.length === 0) return
    if (!canWork(this.#workbench.user.get(), this.#workbench.sandboxes.get())) {
      this.#workbench.notify('info', fileTexts.uploads.noSandbox)
      return
    }
    const known = this.#workbench.sandboxes.get()
    const dropped =
      known.kind === 'ready'
        ? known.value.find(({ id, name }) => id === sandbox || name === sandbox)
        : undefined
    if (dropped !== undefined) this.#workbench.choose(dropped.id)
    this.#workbench.showPanel('files')
    this.#files.set(files)
  }
}

function isIn({ target }: DragEvent, selector: string): boolean {
  return target instanceof Element && target.closest(selector) !== null
}

/** A file to upload, with its path relative to the drop target. */
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
  // The reader returns entries in batches, then an empty one.
  for (let entries = await readEntries(reader); entries.length > 0; entries = await readEntries(reader))
    for (const child of entries) for (const file of await filesOf(child, path)) found.push(file)
  return found
}

function alone(file: File | null): readonly Dropped[] {
  return file === null ? [] : [{ path: file.name, file }]
}

/** All dropped files, including those in folders. Must be called during the drop event. */
export async function readDropped(transfer: DataTransfer): Promise<readonly Dropped[]> {
  const items = [...transfer.items].filter(({ kind }) => kind === 'file')
  // Some drag sources provide files but no file system entries.
  if (items.length === 0) return [...transfer.files].flatMap(alone)
  const found = items.map(async (item) => {
    const entry = item.webkitGetAsEntry()
    return entry === null ? alone(item.getAsFile()) : filesOf(entry, '')
  })
  return (await Promise.all(found)).flat()
}

/** Download URL; a folder is downloaded as a tar archive. */
export function downloadUrl(sandbox: string, path: string, isFolder: boolean): string {
  return workspaceUrl(sandbox, isFolder ? 'archive' : 'file', { path })
}
