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

/** Heights are guessed until lines are drawn, and spaces beside changes are made a frame later. */
const SETTLE_FRAMES = 4

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

/** Leaves what is held where it is drawn. */
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

/** The state fields that a view begins with at a place. */
export function stateAtPosition(place: Place | undefined): {
  readonly selection?: EditorSelection
  readonly extension: Extension
} {
  if (place === undefined) return { extension: [] }
  const { selection, history, anchor } = place
  return { selection, extension: [historyField.init(() => history), anchorField.init(() => anchor)] }
}

/** Where a view is in its text; `scroller` is what moves it up and down. */
export function positionOf(view: EditorView, scroller: Element, text: FileText): Place {
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

/** Puts a view on the page, where another view of its text was; `dom` is all of it, and `scroller` what moves it up and down. */
export function showAtPosition(
  view: EditorView,
  { parent, dom, scroller }: { readonly parent: Element; readonly dom: Element; readonly scroller: Element },
  place: Place | undefined,
): void {
  // A bar that opens on the page takes the keyboard, which may be elsewhere.
  if (place?.findBar !== undefined) openFindBar(view, place.findBar)
  parent.append(dom)
  if (place === undefined) return
  if (place.hasFocus && !focusFindBar(view, place.findBar)) view.focus()
  settle(view, scroller)
  view.scrollDOM.scrollLeft = place.leftPx
}

/** Changes a text, and by `aside` what is beside it, and leaves what is looked at where it is drawn. */
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

/** The bar that finds and replaces, for another view of the text to go on with. */
export interface FindBar {
  readonly query: SearchQuery
  /** What has the keyboard in it. */
  readonly field:
    | { readonly name: string; readonly start: number | null; readonly end: number | null }
    | undefined
}

/** The bar of a view; undefined when it is closed. */
function readFindBar(view: EditorView): FindBar | undefined {
  if (!searchPanelOpen(view.state)) return undefined
  const { activeElement: at } = view.root
  const isField = at instanceof HTMLInputElement && view.dom.contains(at)
  const field = isField ? { name: at.name, start: at.selectionStart, end: at.selectionEnd } : undefined
  return { query: getSearchQuery(view.state), field }
}

/** Opens the bar with what is looked for. */
function openFindBar(view: EditorView, { query }: FindBar): void {
  openSearchPanel(view)
  view.dispatch({ effects: setSearchQuery.of(query) })
}

/** Gives the keyboard to the field of the bar that had it; answers whether there is one. */
function focusFindBar(view: EditorView, bar: FindBar | undefined): boolean {
  const inputs = view.dom.querySelectorAll<HTMLInputElement>('.cm-search input')
  const input = [...inputs].find(({ name }) => name === bar?.field?.name)
  if (input === undefined) return false
  input.focus()
  if (input.type !== 'checkbox') input.setSelectionRange(bar?.field?.start ?? null, bar?.field?.end ?? null)
  return true
}

/** A position, and how far below the top of what scrolls it is drawn. */
interface Anchor {
  readonly position: number
  readonly topPx: number
}

/** Holds another one from now on. */
export const setAnchor = StateEffect.define<Anchor>()

/** What is held where it is drawn until a view has settled. It stays with its text when somebody writes meanwhile. */
export const anchorField = StateField.define<Anchor | undefined>({
  create: () => undefined,
  update(held, { changes, effects }) {
    for (const effect of effects) if (effect.is(setAnchor)) return effect.value
    return held === undefined ? undefined : { ...held, position: changes.mapPos(held.position) }
  },
})
