import { getOriginalDoc, MergeView, originalDocChangeEffect, unifiedMergeView } from '@codemirror/merge'
import { ChangeSet, Compartment, EditorState, type Text } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { basics } from './basics.ts'
import { changesBetween } from './changes.ts'
import { languageOf } from './language.ts'
import { changeKeepingPosition } from './view-position.ts'

interface CompareOptions {
  readonly path: string
  readonly before: Text
  readonly after: Text
}

/** A view of two texts and their differences. */
export interface Comparison {
  /** Replaces both texts and keeps the scroll position. */
  show(before: Text, after: Text): void
  dispose(): void
}

/** Unchanged lines are collapsed except for this context. */
const CONTEXT = { margin: 3, minSize: 6 }

/** Adds syntax highlighting once the language is loaded. */
export function color(path: string, language: Compartment, views: readonly EditorView[]): void {
  void languageOf(path).then((extension) => {
    for (const view of views) view.dispatch({ effects: language.reconfigure(extension) })
  })
}

/** Two texts side by side. */
export function compareBeside(parent: HTMLElement, { path, before, after }: CompareOptions): Comparison {
  const language = new Compartment()
  const extensions = [basics({ isReadOnly: true }), language.of([])]
  const view = new MergeView({
    parent,
    collapseUnchanged: CONTEXT,
    a: {
      doc: before,
      extensions,
    },
    b: {
      doc: after,
      extensions,
    },
  })
  color(path, language, [view.a, view.b])
  return {
    show: (nextBefore, nextAfter) =>
      changeKeepingPosition(view.b, parent, {
        changes: changesBetween(view.b.state.doc, nextAfter),
        aside: () => view.a.dispatch({ changes: changesBetween(view.a.state.doc, nextBefore) }),
      }),
    dispose: () => view.destroy(),
  }
}

/** Both texts in one column, with removed and added lines. */
export function compareInline(parent: HTMLElement, { path, before, after }: CompareOptions): Comparison {
  const language = new Compartment()
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: after,
      extensions: [
        basics({ isReadOnly: true }),
        language.of([]),
        unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: CONTEXT }),
      ],
    }),
  })
  color(path, language, [view])
  const showBefore = (text: Text): void => {
    const original = getOriginalDoc(view.state)
    const changes = ChangeSet.of(changesBetween(original, text), original.length)
    view.dispatch({ effects: originalDocChangeEffect(view.state, changes) })
  }
  return {
    show: (nextBefore, nextAfter) =>
      changeKeepingPosition(view, view.scrollDOM, {
        changes: changesBetween(view.state.doc, nextAfter),
        aside: () => showBefore(nextBefore),
      }),
    dispose: () => view.destroy(),
  }
}
