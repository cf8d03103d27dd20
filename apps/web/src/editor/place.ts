import { historyField } from '@codemirror/commands'
import type { ChangeSpec, EditorSelection, Extension } from '@codemirror/state'
import type { EditorView } from '@codemirror/view'
import type { FileText } from './file-text.ts'
import { type FindBar, findBarOf, openFindBar } from './find-bar.ts'

/** Heights are guessed until lines are drawn, and spaces beside changes are made a frame later. */
const SETTLE_FRAMES = 4

/** A position, and how far below the top of what scrolls it is drawn. */
interface Anchor {
  readonly position: number
  readonly topPx: number
}

/** Where somebody is in a text, for another view of it to go on from. */
export interface Place {
  /** What can be undone is of this text. */
  readonly text: FileText
  readonly selection: EditorSelection
  readonly history: unknown
  readonly anchor: Anchor
  readonly leftPx: number
  readonly hasFocus: boolean
  readonly findBar: FindBar | undefined
}

function topOf(view: EditorView, scroller: Element, position: number): number {
  const drawn = view.coordsAtPos(position)?.top ?? view.documentTop + view.lineBlockAt(position).top
  return drawn - scroller.getBoundingClientRect().top
}

/** The cursor if it can be seen, and otherwise the first line that can. */
function anchorOf(view: EditorView, scroller: Element): Anchor {
  const { head } = view.state.selection.main
  const topPx = topOf(view, scroller, head)
  if (topPx >= 0 && topPx < scroller.clientHeight) return { position: head, topPx }
  const { top } = scroller.getBoundingClientRect()
  const { from } = view.lineBlockAtHeight(top - view.documentTop)
  return { position: from, topPx: topOf(view, scroller, from) }
}

function scrollTo(view: EditorView, scroller: Element, { position, topPx }: Anchor): void {
  let frames = SETTLE_FRAMES
  const adjust = (): void => {
    if (!view.dom.isConnected) return
    const offPx = topOf(view, scroller, Math.min(position, view.state.doc.length)) - topPx
    if (Math.abs(offPx) >= 1) scroller.scrollTop += offPx
    frames -= 1
    if (frames > 0) requestAnimationFrame(adjust)
  }
  adjust()
}

/** The state fields that a view begins with at a place. */
export function startAt(place: Place | undefined): {
  readonly selection?: EditorSelection
  readonly extension: Extension
} {
  if (place === undefined) return { extension: [] }
  return { selection: place.selection, extension: historyField.init(() => place.history) }
}

/** Where a view is in its text; `scroller` is what moves it up and down. */
export function placeOf(view: EditorView, scroller: Element, text: FileText): Place {
  return {
    text,
    selection: view.state.selection,
    history: view.state.field(historyField),
    anchor: anchorOf(view, scroller),
    leftPx: view.scrollDOM.scrollLeft,
    hasFocus: view.dom.contains(view.root.activeElement),
    findBar: findBarOf(view),
  }
}

/** Shows a text at the place where another view of it was. */
export function goOnAt(view: EditorView, scroller: Element, place: Place): void {
  if (place.hasFocus) {
    if (place.findBar === undefined) view.focus()
    else openFindBar(view, place.findBar)
  }
  scrollTo(view, scroller, place.anchor)
  view.scrollDOM.scrollLeft = place.leftPx
}

/** Changes a text, and by `aside` what is beside it, and leaves what is looked at where it is drawn. */
export function changeInPlace(
  view: EditorView,
  scroller: Element,
  { changes, aside }: { readonly changes: readonly ChangeSpec[]; readonly aside?: () => void },
): void {
  const { position, topPx } = anchorOf(view, scroller)
  const made = view.state.changes(changes)
  aside?.()
  view.dispatch({ changes: made })
  scrollTo(view, scroller, { position: made.mapPos(position), topPx })
}
