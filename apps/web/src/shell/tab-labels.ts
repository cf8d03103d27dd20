import { displayName } from '../files/display-name.ts'
import type { Layout, View } from '../layout/layout.ts'
import { shellTexts } from '../texts/shell.ts'
import { titleOf } from './titles.ts'

/** The label of a tab. */
export interface TabLabel {
  readonly name: string
  /** Distinguishes tabs of the same name; may be empty. */
  readonly context: string
  /** Tooltip with the full location. */
  readonly hint: string
}

/** Context for labels, besides the layout. */
interface LabelContext {
  /** Terminal titles by session. */
  readonly titles: Readonly<Record<string, string>>
  readonly nameSandbox: (sandbox: string) => string
}

/** For a tab without a view. */
export const EMPTY_LABEL: TabLabel = { name: shellTexts.tabs.empty, context: '', hint: '' }

type PathView = Extract<View, { path: string }>

/** A tab named after its focused view. */
interface Titled<V extends View = View> {
  readonly id: string
  readonly view: V
  readonly title: string
  readonly sandboxName: string
}

function isPath(one: Titled): one is Titled<PathView> {
  return 'path' in one.view
}

/** Length of an abbreviated commit id. */
const COMMIT_CHARS = 7

/** What a diff compares. */
function comparedText(view: PathView): string {
  if (view.kind === 'file') return ''
  if (typeof view.of === 'object') return view.of.commit.slice(0, COMMIT_CHARS)
  return view.of === 'staged' ? shellTexts.tabs.staged : shellTexts.tabs.unstaged
}

function foldersOf({ path }: PathView): readonly string[] {
  return path.split('/').slice(0, -1)
}

/** As many trailing folders of a path as are needed to tell it from the others. */
function distinguishingFolders(view: PathView, others: readonly PathView[]): string {
  const folders = foldersOf(view)
  const end = (all: readonly string[], count: number): string => all.slice(-count).join('/')
  const isAlike = (count: number): boolean =>
    others.some((other) => end(foldersOf(other), count) === end(folders, count))
  let count = 1
  while (count < folders.length && isAlike(count)) count += 1
  const title = end(folders, count)
  return title === '' ? '' : displayName(count < folders.length ? `…/${title}` : title)
}

/** What distinguishes a file or diff from others with the same title: folder, sandbox, or what is compared. */
function contextOf({ view, sandboxName }: Titled<PathView>, others: readonly Titled<PathView>[]): string {
  const elsewhere = others.filter((other) => other.view.path !== view.path)
  const alike = others.filter((other) => other.view.path === view.path)
  const isInAnother = alike.some((other) => other.sandboxName !== sandboxName)
  const isOfAnother = alike.some((other) => comparedText(other.view) !== comparedText(view))
  const parts = [
    elsewhere.length === 0
      ? ''
      : distinguishingFolders(
          view,
          elsewhere.map((other) => other.view),
        ),
    isInAnother ? sandboxName : '',
    isOfAnother ? comparedText(view) : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function labelPath(one: Titled<PathView>, all: readonly Titled[]): TabLabel {
  const others = all.filter(isPath).filter((other) => other !== one && other.title === one.title)
  const what = [displayName(one.view.path), comparedText(one.view)].filter((part) => part !== '').join(', ')
  return {
    name: one.title,
    context: contextOf(one, others),
    hint: shellTexts.tabs.pathHint(what, one.sandboxName),
  }
}

/** Terminals of the same name are numbered in tab order; with several sandboxes, the sandbox is added. */
function labelShell(one: Titled, all: readonly Titled[]): TabLabel {
  const { title, sandboxName } = one
  const named = all.filter(({ view, title: other }) => !('path' in view) && other === title)
  const alike = named.filter((other) => other.sandboxName === sandboxName)
  const number = alike.indexOf(one) + 1
  const name = number > 1 ? `${title} ${number}` : title
  const context = alike.length < named.length && title !== sandboxName ? sandboxName : ''
  return { name, context, hint: shellTexts.tabs.terminalHint(name, sandboxName) }
}

/** The labels by tab id: the user's name for the tab, or a unique one derived from its view. */
export function labelTabs(
  { tabs, views }: Layout,
  { titles, nameSandbox }: LabelContext,
): ReadonlyMap<string, TabLabel> {
  const own = new Map(tabs.map(({ id, name }) => [id, name]))
  const titled = tabs.flatMap(({ id, focus }): readonly Titled[] => {
    const view = views[focus]
    if (view === undefined) return []
    const sandboxName = nameSandbox(view.sandbox)
    const title = view.kind === 'terminal' ? titles[view.session ?? ''] : undefined
    return [{ id, view, title: titleOf(view, title, sandboxName), sandboxName }]
  })
  // User-given names are not made unique.
  const all = titled.filter(({ id }) => own.get(id) === undefined)
  return new Map(
    titled.map((one) => {
      const label = isPath(one) ? labelPath(one, all) : labelShell(one, all)
      const name = own.get(one.id)
      return [one.id, name === undefined ? label : { ...label, name, context: '' }]
    }),
  )
}
