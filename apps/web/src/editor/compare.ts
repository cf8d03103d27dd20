import { MergeView, unifiedMergeView } from '@codemirror/merge'
import { EditorState } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { basics, languageOf, lineSeparatorOf } from './editor.ts'

export interface CompareOptions {
  readonly path: string
  readonly before: string
  readonly after: string
  /** The second text can be changed. */
  readonly onChange?: (text: string) => void
}

/** Two texts and what differs. */
export interface Comparison {
  /** The second text, as it is now. */
  readonly text: string
  dispose(): void
}

/** Unchanged lines are folded away but for these around a change. */
const CONTEXT = { margin: 3, minSize: 6 }

/** Two texts side by side. */
export async function compareBeside(parent: HTMLElement, options: CompareOptions): Promise<Comparison> {
  const language = await languageOf(options.path)
  const isReadOnly = options.onChange === undefined
  const view = new MergeView({
    parent,
    collapseUnchanged: CONTEXT,
    a: { doc: options.before, extensions: [basics({ isReadOnly: true }), language] },
    b: {
      doc: options.after,
      extensions: [
        EditorState.lineSeparator.of(lineSeparatorOf(options.after)),
        basics({ isReadOnly, onChange: () => options.onChange?.(view.b.state.sliceDoc()) }),
        language,
      ],
    },
  })
  return {
    get text() {
      return view.b.state.sliceDoc()
    },
    dispose: () => view.destroy(),
  }
}

/** Two texts in one, with what went and what came. */
export async function compareInline(parent: HTMLElement, options: CompareOptions): Promise<Comparison> {
  const language = await languageOf(options.path)
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: options.after,
      extensions: [
        basics({ isReadOnly: true }),
        language,
        unifiedMergeView({ original: options.before, mergeControls: false, collapseUnchanged: CONTEXT }),
      ],
    }),
  })
  return {
    get text() {
      return view.state.sliceDoc()
    },
    dispose: () => view.destroy(),
  }
}
