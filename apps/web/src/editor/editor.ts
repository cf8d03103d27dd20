import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  LanguageDescription,
} from '@codemirror/language'
import { languages } from '@codemirror/language-data'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { THEME } from './theme.ts'

export interface EditorOptions {
  readonly text: string
  readonly path: string
  readonly isReadOnly?: boolean
  readonly onChange?: (text: string) => void
  readonly onSave?: () => void
}

/** Everything about a text that does not depend on its language. */
export function basics({
  isReadOnly = false,
  onChange,
  onSave,
}: Omit<EditorOptions, 'text' | 'path'>): Extension {
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
    EditorView.contentAttributes.of({ 'aria-label': 'Text of the file' }),
    keymap.of([
      { key: 'Mod-s', run: () => (onSave?.(), true), preventDefault: true },
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      indentWithTab,
      ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange?.(update.state.doc.toString())
    }),
    THEME,
  ]
}

/** Loads what knows a file's language; nothing when there is none. */
export async function languageOf(path: string): Promise<Extension> {
  const description = LanguageDescription.matchFilename(languages, path.split('/').pop() ?? path)
  return description === null ? [] : description.load()
}

/** Ends of lines as the file has them: CodeMirror itself knows only one kind. */
export function lineSeparatorOf(text: string): '\r\n' | '\n' {
  return text.includes('\r\n') && !/[^\r]\n/.test(text) ? '\r\n' : '\n'
}

/** A text that can be changed. It knows no framework. */
export class Editor {
  readonly #view: EditorView
  readonly #language = new Compartment()
  #path = ''

  constructor(parent: HTMLElement, options: EditorOptions) {
    const separator = lineSeparatorOf(options.text)
    this.#view = new EditorView({
      parent,
      state: EditorState.create({
        doc: options.text,
        extensions: [
          EditorState.lineSeparator.of(separator),
          basics({
            ...options,
            onChange: () => options.onChange?.(this.text),
          }),
          this.#language.of([]),
        ],
      }),
    })
    this.setPath(options.path)
  }

  /** The file is called so, which says in what language it is. */
  setPath(path: string): void {
    if (path === this.#path) return
    this.#path = path
    void languageOf(path).then((language) => {
      if (path === this.#path) this.#view.dispatch({ effects: this.#language.reconfigure(language) })
    })
  }

  get text(): string {
    return this.#view.state.sliceDoc()
  }

  /** Replaces the text; the place stays as far as it can. */
  setText(text: string): void {
    if (text === this.text) return
    const at = Math.min(this.#view.state.selection.main.head, text.length)
    this.#view.dispatch({
      changes: { from: 0, to: this.#view.state.doc.length, insert: text },
      selection: { anchor: Math.min(at, this.#view.state.toText(text).length) },
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
