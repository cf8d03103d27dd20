import { goToNextChunk, type MergeConfig, MergeView } from '@codemirror/merge'
import { Compartment, Text } from '@codemirror/state'
import { fileTexts } from '../texts/files.ts'
import { basics, endsOf } from './basics.ts'
import { changesBetween } from './changes.ts'
import { color } from './compare.ts'
import type { FileText } from './file-text.ts'
import {
  changeKeepingPosition,
  type ViewPosition,
  positionOf,
  showAtPosition,
  stateAtPosition,
} from './view-position.ts'

interface ConflictOptions {
  readonly path: string
  /** The text on disk; undefined when there is none to take lines from. */
  readonly theirs: FileText | undefined
  readonly mine: FileText
  /** Position in the user's own text, to restore. */
  readonly position: ViewPosition | undefined
  readonly onChange: (mine: FileText) => void
  /** The user pressed Ctrl+S. */
  readonly onSave: () => void
}

/** The button that applies one change from disk; hidden when there is no text on disk. */
function createTakeButton(isHidden: boolean, giveKeyboard: () => void): HTMLElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.title = fileTexts.editor.takeChange
  button.ariaLabel = button.title
  button.textContent = '→'
  // `hidden` is overridden by the view's theme.
  if (isHidden) button.style.display = 'none'
  // The view itself handles only the mouse.
  button.addEventListener('click', ({ detail }) => {
    if (detail !== 0) return
    button.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }))
    giveKeyboard()
  })
  return button
}

/**
 * The text on disk beside the user's text, which stays editable. Nothing is collapsed, as the cursor may be anywhere.
 */
export class Conflict {
  readonly #view: MergeView
  readonly #parent: HTMLElement
  #mine: FileText
  #theirs: FileText | undefined

  constructor(parent: HTMLElement, options: ConflictOptions) {
    const { path, theirs, mine, position: left, onChange, onSave } = options
    const language = new Compartment()
    // A position belongs to one text.
    const position = left?.text.equals(mine) === true ? left : undefined
    const { selection, extension } = stateAtPosition(position)
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
    showAtPosition(this.#view.b, { parent, dom: this.#view.dom, scroller: parent }, position)
    color(path, language, [this.#view.a, this.#view.b])
  }

  /** The current position; valid while the view is mounted. */
  get position(): ViewPosition {
    return positionOf(this.#view.b, this.#parent, this.#mine)
  }

  /** The file on disk changed again. */
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
