import { historyField } from '@codemirror/commands'
import {
  getSearchQuery,
  openSearchPanel,
  searchPanelOpen,
  type SearchQuery,
  setSearchQuery,
} from '@codemirror/search'
import {
  type ChangeSpec,
  type EditorSelection,
  type Extension,
  StateEffect,
  StateField,
} from '@codemirror/state'
import type { EditorView } from '@codemirror/view'
import type { FileText } from './file-text.ts'

/** Line heights are estimates until drawn, and spacers beside changes appear a frame later. */
const SETTLE_FRAMES = 4

/** Selection, scroll position and undo history of a view, to restore in another view of the same text. */
export interface ViewPosition {
  /** The text that the undo history belongs to. */
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

/** The cursor if it is visible, otherwise the first visible line. */
function anchorOf(view: EditorView, scroller: Element): Anchor {
  const { head } = view.state.selection.main
  const topPx = topOf(view, scroller, head)
  if (topPx >= 0 && topPx < scroller.clientHeight) return { position: head, topPx }
  const { top } = scroller.getBoundingClientRect()
  const { from } = view.lineBlockAtHeight(top - view.documentTop)
  return { position: from, topPx: topOf(view, scroller, from) }
}

/** Scrolls until the anchor is drawn where it was. */
function settle(view: EditorView, scroller: Element): void {
  let frames = SETTLE_FRAMES
  const adjust = (): void => {
    const held = view.state.field(anchorField)
    if (held === undefined || !view.dom.isConnected) return
    const offPx = topOf(view, scroller, held.position) - held.topPx
    if (Math.abs(offPx) >= 1) scroller.scrollTop += offPx
    frames -= 1
    if (frames > 0) requestAnimationFrame(adjust)
  }
  adjust()
}

/** Initial selection and state fields for a view at a position. */
export function stateAtPosition(position: ViewPosition | undefined): {
  readonly selection?: EditorSelection
  readonly extension: Extension
} {
  if (position === undefined) return { extension: [] }
  const { selection, history, anchor } = position
  return { selection, extension: [historyField.init(() => history), anchorField.init(() => anchor)] }
}

/** Captures the position of a view; `scroller` is the element that scrolls it vertically. */
export function positionOf(view: EditorView, scroller: Element, text: FileText): ViewPosition {
  return {
    text,
    selection: view.state.selection,
    history: view.state.field(historyField),
    anchor: anchorOf(view, scroller),
    leftPx: view.scrollDOM.scrollLeft,
    hasFocus: view.dom.contains(view.root.activeElement),
    findBar: readFindBar(view),
  }
}

/** Mounts a view at a position; `dom` is the root element, `scroller` the element that scrolls it vertically. */
export function showAtPosition(
  view: EditorView,
  { parent, dom, scroller }: { readonly parent: Element; readonly dom: Element; readonly scroller: Element },
  position: ViewPosition | undefined,
): void {
  // Opened after mounting, the search bar would take the focus.
  if (position?.findBar !== undefined) openFindBar(view, position.findBar)
  parent.append(dom)
  if (position === undefined) return
  if (position.hasFocus && !focusFindBar(view, position.findBar)) view.focus()
  settle(view, scroller)
  view.scrollDOM.scrollLeft = position.leftPx
}

/** Changes a text, and with `aside` the one beside it, keeping the visible lines where they are. */
export function changeKeepingPosition(
  view: EditorView,
  scroller: Element,
  { changes, aside }: { readonly changes: readonly ChangeSpec[]; readonly aside?: () => void },
): void {
  const { position, topPx } = anchorOf(view, scroller)
  const made = view.state.changes(changes)
  aside?.()
  view.dispatch({ changes: made, effects: setAnchor.of({ position: made.mapPos(position), topPx }) })
  settle(view, scroller)
}

/** State of the find and replace bar, to restore in another view of the text. */
export interface FindBar {
  readonly query: SearchQuery
  /** The focused input. */
  readonly field:
    | { readonly name: string; readonly start: number | null; readonly end: number | null }
    | undefined
}

/** The state of a view's search bar; undefined when it is closed. */
function readFindBar(view: EditorView): FindBar | undefined {
  if (!searchPanelOpen(view.state)) return undefined
  const { activeElement: at } = view.root
  const isField = at instanceof HTMLInputElement && view.dom.contains(at)
  const field = isField ? { name: at.name, start: at.selectionStart, end: at.selectionEnd } : undefined
  return { query: getSearchQuery(view.state), field }
}

/** Opens the bar with a query. */
function openFindBar(view: EditorView, { query }: FindBar): void {
  openSearchPanel(view)
  view.dispatch({ effects: setSearchQuery.of(query) })
}

/** Focuses the input that had the focus; false when there is none. */
function focusFindBar(view: EditorView, bar: FindBar | undefined): boolean {
  const inputs = view.dom.querySelectorAll<HTMLInputElement>('.cm-search input')
  const input = [...inputs].find(({ name }) => name === bar?.field?.name)
  if (input === undefined) return false
  input.focus()
  if (input.type !== 'checkbox') input.setSelectionRange(bar?.field?.start ?? null, bar?.field?.end ?? null)
  return true
}

/** A text position and its distance from the top of the scroller. */
interface Anchor {
  readonly position: number
  readonly topPx: number
}

/** Sets the anchor. */
export const setAnchor = StateEffect.define<Anchor>()

/** The position that stays in place until the view has settled. It is mapped through edits. */
export const anchorField = StateField.define<Anchor | undefined>({
  create: () => undefined,
  update(held, { changes, effects }) {
    for (const effect of effects) if (effect.is(setAnchor)) return effect.value
    return held === undefined ? undefined : { ...held, position: changes.mapPos(held.position) }
  },
})
