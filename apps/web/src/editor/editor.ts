import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from '@codemirror/language'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension, type Text } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { changesBetween } from './changes.ts'
import type { FileText } from './file-text.ts'
import { languageOf } from './language.ts'
import { goOnAt, type Place, placeOf, startAt } from './place.ts'
import { THEME } from './theme.ts'

interface Basics {
  readonly label?: string
  readonly isReadOnly?: boolean
  readonly onChange?: (lines: Text) => void
  readonly onSave?: () => void
}

/** Everything about a text that does not depend on its language. */
export function basics({
  label = 'Text of the file',
  isReadOnly = false,
  onChange,
  onSave,
}: Basics): Extension {
  return [
    lineNumbers(),
    foldGutter(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true }),
    EditorState.readOnly.of(isReadOnly),
    EditorView.editable.of(!isReadOnly),
    EditorView.contentAttributes.of({ 'aria-label': label }),
    keymap.of([
      { key: 'Mod-s', run: () => (onSave?.(), true), preventDefault: true },
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      indentWithTab,
      ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange?.(update.state.doc)
    }),
    THEME,
  ]
}

/** Lines may be pasted with any ends unless a file has several kinds of its own. */
export function endsOf({ isMixed }: FileText): Extension {
  return isMixed ? EditorState.lineSeparator.of('\n') : []
}

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
    const { selection, extension } = startAt(place)
    this.#view = new EditorView({
      parent,
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
    if (place !== undefined) goOnAt(this.#view, this.#view.scrollDOM, place)
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
    return placeOf(this.#view, this.#view.scrollDOM, this.#text)
  }

  /** Replaces the text by what differs; places in all the rest stay. */
  setText(text: FileText): void {
    if (text.equals(this.#text)) return
    this.#text = text.withLines(this.#text.lines)
    this.#view.dispatch({
      changes: changesBetween(this.#text.lines, text.lines),
      effects: this.#ends.reconfigure(endsOf(text)),
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
