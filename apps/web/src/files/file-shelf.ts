import { focusView, type View } from '../layout/layout.ts'
import type { DirtyViews } from '../state/dirty-views.ts'
import { messageOf, type Workbench } from '../state/workbench.ts'
import { accessTo, OpenFile } from './open-file.ts'
import { shownName } from './shown-name.ts'

type FilePlace = Extract<View, { kind: 'file' }>

/** The files of all panes. They live as long as their pane, not as long as what draws it: a pane that is split keeps its text. */
export class FileShelf {
  readonly #workbench: Workbench
  readonly #dirty: DirtyViews
  readonly #files = new Map<string, { readonly file: OpenFile; readonly path: string }>()

  constructor(workbench: Workbench, dirty: DirtyViews) {
    this.#workbench = workbench
    this.#dirty = dirty
    workbench.layout.subscribe(({ views }) => this.#drop(views))
  }

  /** The file of a pane, read when it is first asked for. */
  of(viewId: string, { sandbox, path }: FilePlace): OpenFile {
    const known = this.#files.get(viewId)
    if (known?.path === path) return known.file
    const file = new OpenFile(accessTo(sandbox, path), path)
    this.#files.set(viewId, { file, path })
    const unsaved = {
      ...{ sandbox, path, discard: () => file.discard() },
      save: () => this.#saveFor(viewId),
    }
    file.dirty.subscribe((isDirty) => this.#dirty.set(viewId, isDirty ? unsaved : undefined))
    void file.load()
    return file
  }

  /** Saves the file of a pane; answers whether nothing of it is unsaved now. */
  async save(viewId: string): Promise<boolean> {
    const known = this.#files.get(viewId)
    if (known === undefined) return true
    try {
      await known.file.save()
    } catch (caught) {
      this.#workbench.tell('error', `Cannot save ${shownName(known.path)}: ${messageOf(caught)}`)
    }
    return !known.file.isDirty
  }

  /** Saves on the way out; what cannot be saved is put before the person. */
  async #saveFor(viewId: string): Promise<boolean> {
    const isSaved = await this.save(viewId)
    if (!isSaved) this.#workbench.changeLayout((layout) => focusView(layout, viewId))
    return isSaved
  }

  #drop(views: Readonly<Record<string, View>>): void {
    for (const viewId of [...this.#files.keys()]) {
      if (views[viewId] !== undefined) continue
      this.#files.delete(viewId)
      this.#dirty.set(viewId, undefined)
    }
  }
}
