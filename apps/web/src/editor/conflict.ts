import { goToNextChunk, type MergeConfig, MergeView } from '@codemirror/merge'
import { Compartment, Text } from '@codemirror/state'
import { fileTexts } from '../texts/files.ts'
import { basics, endsOf } from './basics.ts'
import { changesBetween } from './changes.ts'
import { color } from './compare.ts'
import type { FileText } from './file-text.ts'
import {
  changeKeepingPosition,
  type Place,
  positionOf,
  showAtPosition,
  stateAtPosition,
} from './view-position.ts'

interface ConflictOptions {
  readonly path: string
  /** What is on the disk. Undefined: nothing that lines could be taken from. */
  readonly theirs: FileText | undefined
  readonly mine: FileText
  /** Where the person was in their text. */
  readonly place: Place | undefined
  readonly onChange: (mine: FileText) => void
  /** Participant wants to save. */
  readonly onSave: () => void
}

/** What takes one change over, and is gone with it; hidden where there is no text to take it from. */
function createTakeButton(isHidden: boolean, giveKeyboard: () => void): HTMLElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.title = fileTexts.editor.takeChange
  button.ariaLabel = button.title
  button.textContent = '→'
  // The theme of the view shows what is only hidden.
  if (isHidden) button.style.display = 'none'
  // The view itself listens to a mouse only.
  button.addEventListener('click', ({ detail }) => {
    if (detail !== 0) return
    button.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }))
    giveKeyboard()
  })
  return button
}

/** What is on the disk, and beside it the text that somebody goes on writing. Nothing is folded away: they may be anywhere. */
export class Conflict {
  readonly #view: MergeView
  readonly #parent: HTMLElement
  #mine: FileText
  #theirs: FileText | undefined

  constructor(parent: HTMLElement, options: ConflictOptions) {
    const { path, theirs, mine, place: left, onChange, onSave } = options
    const language = new Compartment()
    // A place in another text is none in this one.
    const place = left?.text.equals(mine) === true ? left : undefined
    const { selection, extension } = stateAtPosition(place)
    this.#parent = parent
    this.#theirs = theirs
    this.#mine = mine
    const change = (lines: Text): void => {
      this.#mine = this.#mine.withLines(lines)
      onChange(this.#mine)
    }
    this.#view = new MergeView({
      ...this.#controls(),
      a: {
        doc: theirs?.lines ?? Text.empty,
        extensions: [basics({ isReadOnly: true, label: fileTexts.editor.onDisk, onSave }), language.of([])],
      },
      b: {
        doc: this.#mine.lines,
        ...(selection === undefined ? {} : { selection }),
        extensions: [
          endsOf(this.#mine),
          basics({ label: fileTexts.editor.mine, onChange: change, onSave }),
          language.of([]),
          extension,
        ],
      },
    })
    showAtPosition(this.#view.b, { parent, dom: this.#view.dom, scroller: parent }, place)
    color(path, language, [this.#view.a, this.#view.b])
  }

  /** Where the person is; as long as it is on the page. */
  get place(): Place {
    return positionOf(this.#view.b, this.#parent, this.#mine)
  }

  /** The file on the disk has become another one again. */
  showTheirs(theirs: FileText | undefined): void {
    if (theirs === this.#theirs) return
    this.#theirs = theirs
    const { a, b } = this.#view
    const changes = changesBetween(a.state.doc, theirs?.lines ?? Text.empty)
    changeKeepingPosition(b, this.#parent, { changes: [], aside: () => a.dispatch({ changes }) })
    this.#view.reconfigure(this.#controls())
  }

  focus(): void {
    this.#view.b.focus()
  }

  goToNextChange(): void {
    goToNextChunk(this.#view.b)
    this.focus()
  }

  #controls(): MergeConfig {
    const isHidden = this.#theirs === undefined
    return {
      revertControls: 'a-to-b',
      renderRevertControl: () => createTakeButton(isHidden, () => this.focus()),
    }
  }

  dispose(): void {
    this.#view.destroy()
  }
}
