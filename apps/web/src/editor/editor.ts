import { redoDepth } from '@codemirror/commands'
import { Compartment, EditorState, type Text, Transaction } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { basics, endsOf } from './basics.ts'
import { changesBetween } from './changes.ts'
import type { FileText } from './file-text.ts'
import { languageOf } from './language.ts'
import { type ViewPosition, positionOf, showAtPosition, stateAtPosition } from './view-position.ts'

interface EditorOptions {
  readonly text: FileText
  readonly path: string
  /** Position in another view of the same text, to restore. */
  readonly position?: ViewPosition | undefined
  readonly onChange: (text: FileText) => void
  readonly onSave: () => void
}

/** An editable text, independent of React. */
export class Editor {
  readonly #view: EditorView
  readonly #language = new Compartment()
  readonly #ends = new Compartment()
  #text: FileText
  #path = ''

  constructor(parent: HTMLElement, { text, path, position, onChange, onSave }: EditorOptions) {
    this.#text = position?.text ?? text
    const change = (lines: Text): void => {
      this.#text = this.#text.withLines(lines)
      onChange(this.#text)
    }
    const { selection, extension } = stateAtPosition(position)
    this.#view = new EditorView({
      state: EditorState.create({
        doc: this.#text.lines,
        ...(selection === undefined ? {} : { selection }),
        extensions: [
          this.#ends.of(endsOf(this.#text)),
          basics({ onChange: change, onSave }),
          this.#language.of([]),
          extension,
        ],
      }),
    })
    this.setText(text)
    showAtPosition(this.#view, { parent, dom: this.#view.dom, scroller: this.#view.scrollDOM }, position)
    this.setPath(path)
  }

  /** The path selects the language. */
  setPath(path: string): void {
    if (path === this.#path) return
    this.#path = path
    void languageOf(path).then((language) => {
      if (path === this.#path) this.#view.dispatch({ effects: this.#language.reconfigure(language) })
    })
  }

  /** The current position; valid while the editor is mounted. */
  get position(): ViewPosition {
    return positionOf(this.#view, this.#view.scrollDOM, this.#text)
  }

  /** Replaces only what differs, so that cursor and scroll position survive. */
  setText(text: FileText): void {
    if (text.equals(this.#text)) return
    this.#text = text.withLines(this.#text.lines)
    this.#view.dispatch({
      changes: changesBetween(this.#text.lines, text.lines),
      effects: this.#ends.reconfigure(endsOf(text)),
      // A separate undo step would discard the redo history.
      annotations: Transaction.addToHistory.of(redoDepth(this.#view.state) === 0),
    })
  }

  /** Moves the cursor to a line and column, counted from 1 and clamped to the text. */
  goTo(line: number, column = 1): void {
    const { doc } = this.#view.state
    const { from, to } = doc.line(Math.min(Math.max(1, line), doc.lines))
    const anchor = Math.min(from + Math.max(1, column) - 1, to)
    this.#view.dispatch({
      selection: { anchor },
      effects: EditorView.scrollIntoView(anchor, { y: 'center' }),
    })
  }

  focus(): void {
    this.#view.focus()
  }

  dispose(): void {
    this.#view.destroy()
  }
}
