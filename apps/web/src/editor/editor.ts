import { redoDepth } from '@codemirror/commands'
import { Compartment, EditorState, type Text, Transaction } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { basics, endsOf } from './basics.ts'
import { changesBetween } from './changes.ts'
import type { FileText } from './file-text.ts'
import { languageOf } from './language.ts'
import { type Place, positionOf, showAtPosition, stateAtPosition } from './view-position.ts'

interface EditorOptions {
  readonly text: FileText
  readonly path: string
  /** Where the person was in another view of it. */
  readonly place?: Place | undefined
  readonly onChange: (text: FileText) => void
  readonly onSave: () => void
}

/** A text that can be changed. It knows no framework. */
export class Editor {
  readonly #view: EditorView
  readonly #language = new Compartment()
  readonly #ends = new Compartment()
  #text: FileText
  #path = ''

  constructor(parent: HTMLElement, { text, path, place, onChange, onSave }: EditorOptions) {
    this.#text = place?.text ?? text
    const change = (lines: Text): void => {
      this.#text = this.#text.withLines(lines)
      onChange(this.#text)
    }
    const { selection, extension } = stateAtPosition(place)
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
    showAtPosition(this.#view, { parent, dom: this.#view.dom, scroller: this.#view.scrollDOM }, place)
    this.setPath(path)
  }

  /** The file is called so, which says in what language it is. */
  setPath(path: string): void {
    if (path === this.#path) return
    this.#path = path
    void languageOf(path).then((language) => {
      if (path === this.#path) this.#view.dispatch({ effects: this.#language.reconfigure(language) })
    })
  }

  /** Where the person is; as long as the editor is on the page. */
  get place(): Place {
    return positionOf(this.#view, this.#view.scrollDOM, this.#text)
  }

  /** Replaces the text by what differs; places in all the rest stay. */
  setText(text: FileText): void {
    if (text.equals(this.#text)) return
    this.#text = text.withLines(this.#text.lines)
    this.#view.dispatch({
      changes: changesBetween(this.#text.lines, text.lines),
      effects: this.#ends.reconfigure(endsOf(text)),
      // A step of its own would take the place of what was undone and can be redone.
      annotations: Transaction.addToHistory.of(redoDepth(this.#view.state) === 0),
    })
  }

  /** Puts the cursor there, counted from 1, or as near as the text goes. */
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
