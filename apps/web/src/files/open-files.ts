import { changeView, focusView, type View } from '../layout/layout.ts'
import type { DirtyViews } from '../state/dirty-views.ts'
import { formatFailure, type Workbench } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'
import { displayName } from './display-name.ts'
import { accessTo, type FileAccess, OpenFile } from './open-file.ts'
import { movedPath } from './paths.ts'

type FileView = Extract<View, { kind: 'file' }>

/** The open file of each pane. It lives as long as the pane, not the component: splitting a pane keeps its text. */
export class OpenFiles {
  readonly #workbench: Workbench
  readonly #dirty: DirtyViews
  readonly #access: (sandbox: string, path: string) => FileAccess
  readonly #files = new Map<string, { readonly file: OpenFile; readonly path: string }>()

  constructor(workbench: Workbench, dirty: DirtyViews, access = accessTo) {
    this.#access = access
    this.#workbench = workbench
    this.#dirty = dirty
    workbench.layout.subscribe(({ views }) => this.#drop(views))
  }

  /** The file of a pane, loaded on first use. */
  of(viewId: string, { sandbox, path }: FileView): OpenFile {
    const known = this.#files.get(viewId)
    if (known?.path === path) return known.file
    const file = new OpenFile(this.#access(sandbox, path), path)
    this.#files.set(viewId, { file, path })
    file.dirty.subscribe(() => this.#reportDirty(viewId, sandbox))
    void file.load()
    return file
  }

  /** Runs a move on the server and retargets the panes that show what was moved. */
  async move(
    move: { readonly sandbox: string; readonly from: string; readonly to: string },
    run: () => Promise<void>,
  ): Promise<void> {
    const moved = this.#viewsOf(move)
    const files = [...moved.keys()].flatMap((viewId) => this.#files.get(viewId)?.file ?? [])
    for (const file of files) file.beginMove()
    try {
      await run()
    } catch (caught) {
      for (const file of files) void file.endMove()
      throw caught
    }
    for (const [viewId, { sandbox, path }] of moved) {
      const file = this.#files.get(viewId)?.file
      if (file === undefined) continue
      this.#files.set(viewId, { file, path })
      this.#reportDirty(viewId, sandbox)
      void file.endMove({ access: this.#access(sandbox, path), path })
    }
    this.#workbench.changeLayout((layout) =>
      [...moved].reduce((changed, [viewId, view]) => changeView(changed, viewId, () => view), layout),
    )
  }

  /** The affected panes with their new paths. */
  #viewsOf(move: {
    readonly sandbox: string
    readonly from: string
    readonly to: string
  }): Map<string, FileView> {
    const known = this.#workbench.sandboxes.get()
    const sandbox = known.kind === 'ready' ? known.value.find(({ id }) => id === move.sandbox) : undefined
    const moved = new Map<string, FileView>()
    for (const [viewId, view] of Object.entries(this.#workbench.layout.get().views)) {
      if (view.kind !== 'file' || ![move.sandbox, sandbox?.name].includes(view.sandbox)) continue
      const path = movedPath(view.path, move.from, move.to)
      if (path !== undefined) moved.set(viewId, { ...view, path })
    }
    return moved
  }

  #reportDirty(viewId: string, sandbox: string): void {
    const known = this.#files.get(viewId)
    if (known === undefined) return
    const { file, path } = known
    const unsaved = { sandbox, path, discard: () => file.discard(), save: () => this.#saveFor(viewId) }
    this.#dirty.set(viewId, file.isDirty ? unsaved : undefined)
  }

  /** Saves a pane's file; true when nothing is unsaved afterwards. */
  async save(viewId: string): Promise<boolean> {
    const known = this.#files.get(viewId)
    if (known === undefined) return true
    try {
      await known.file.save()
    } catch (caught) {
      this.#workbench.notify(
        'error',
        formatFailure(fileTexts.pane.cannotSave(displayName(known.path)), caught),
      )
    }
    return !known.file.isDirty
  }

  /** Saves before closing; a file that cannot be saved gets the focus. */
  async #saveFor(viewId: string): Promise<boolean> {
    const isSaved = await this.save(viewId)
    if (!isSaved) this.#workbench.changeLayout((layout) => focusView(layout, viewId))
    return isSaved
  }

  #drop(views: Readonly<Record<string, View>>): void {
    for (const viewId of Array.from(this.#files.keys())) {
      if (views[viewId] !== undefined) continue
      this.#files.delete(viewId)
      this.#dirty.set(viewId, undefined)
    }
  }
}
