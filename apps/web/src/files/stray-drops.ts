import { createStore, type Store } from '@sandwire/client'
import { hasPlaceToWork } from '../state/rights.ts'
import type { Workbench } from '../state/workbench.ts'
import { type Dropped, readDropped } from './upload.ts'
import { fileTexts } from '../texts/files.ts'

/** Marks where dropped files are taken; everywhere else the page takes them itself. */
const TAKES_FILES = '[data-takes-files]'
/** Where dropped text or a link is something to insert. */
const EDITABLE = 'input, textarea, [contenteditable=true]'

/**
 * What is dropped beside the places for it. A browser would leave the page for it, and an editor would type a file into the text:
 * files go to the workspace of the sandbox that they were dropped on instead, after the same question as in the list of files.
 */
export class StrayDrops {
  readonly #workbench: Workbench
  readonly #files = createStore<readonly Dropped[]>([])

  constructor(workbench: Workbench) {
    this.#workbench = workbench
  }

  /** Files that wait for the list of files to take them. */
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
    // Asked last, when whoever knows what is dragged has said so.
    const stopRest = (event: DragEvent): void => {
      if (event.defaultPrevented || isIn(event, EDITABLE)) return
      event.preventDefault()
      if (event.type === 'dragover' && event.dataTransfer !== null) event.dataTransfer.dropEffect = 'none'
    }
    target.addEventListener('dragover', stopRest)
    target.addEventListener('drop', stopRest)
  }

  #stopFiles(event: DragEvent): boolean {
    if (event.dataTransfer?.types.includes('Files') !== true || isIn(event, TAKES_FILES)) return false
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
    if (!hasPlaceToWork(this.#workbench.person.get(), this.#workbench.sandboxes.get())) {
      this.#workbench.tell('info', fileTexts.uploads.noSandbox)
      return
    }
    const known = this.#workbench.sandboxes.get()
    const dropped =
      known.is === 'ready'
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
