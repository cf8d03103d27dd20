import {
  getSearchQuery,
  openSearchPanel,
  searchPanelOpen,
  type SearchQuery,
  setSearchQuery,
} from '@codemirror/search'
import type { EditorView } from '@codemirror/view'

/** The bar that finds and replaces, for another view of the text to go on with. */
export interface FindBar {
  readonly query: SearchQuery
  /** What has the keyboard in it. */
  readonly field:
    | { readonly name: string; readonly start: number | null; readonly end: number | null }
    | undefined
}

/** The bar of a view; undefined when it is closed. */
export function findBarOf(view: EditorView): FindBar | undefined {
  if (!searchPanelOpen(view.state)) return undefined
  const { activeElement: at } = view.root
  const isField = at instanceof HTMLInputElement && view.dom.contains(at)
  const field = isField ? { name: at.name, start: at.selectionStart, end: at.selectionEnd } : undefined
  return { query: getSearchQuery(view.state), field }
}

/** Opens the bar with what is looked for. */
export function openFindBar(view: EditorView, { query }: FindBar): void {
  openSearchPanel(view)
  view.dispatch({ effects: setSearchQuery.of(query) })
}

/** Gives the keyboard to the field of the bar that had it; answers whether there is one. */
export function focusFindBar(view: EditorView, bar: FindBar | undefined): boolean {
  const inputs = view.dom.querySelectorAll<HTMLInputElement>('.cm-search input')
  const input = [...inputs].find(({ name }) => name === bar?.field?.name)
  if (input === undefined) return false
  input.focus()
  if (input.type !== 'checkbox') input.setSelectionRange(bar?.field?.start ?? null, bar?.field?.end ?? null)
  return true
}
