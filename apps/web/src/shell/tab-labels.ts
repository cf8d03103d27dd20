import { displayName } from '../files/shown-name.ts'
import type { Layout, View } from '../layout/layout.ts'
import { shellTexts } from '../texts/shell.ts'
import { titleOf } from './titles.ts'

/** What a tab says. */
export interface TabLabel {
  readonly name: string
  /** What tells it apart from others of its name, said less loudly; empty: there is nothing to say. */
  readonly place: string
  /** All that is known of where it is. */
  readonly hint: string
}

/** What labels are made of, besides the layout. */
interface LabelContext {
  /** What terminals told, by session. */
  readonly titles: Readonly<Record<string, string>>
  readonly nameSandbox: (sandbox: string) => string
}

/** Of a tab with nothing in it. */
export const EMPTY_LABEL: TabLabel = { name: shellTexts.tabs.empty, place: '', hint: '' }

type PathView = Extract<View, { path: string }>

/** A tab that is called after what is in it. */
interface Titled<V extends View = View> {
  readonly id: string
  readonly view: V
  readonly title: string
  readonly sandboxName: string
}

function isPath(one: Titled): one is Titled<PathView> {
  return one.view.kind !== 'terminal'
}

/** Of a commit, as git shortens it. */
const COMMIT_CHARS = 7

/** What a difference compares. */
function comparedText(view: PathView): string {
  if (view.kind === 'file') return ''
  if (typeof view.of === 'object') return view.of.commit.slice(0, COMMIT_CHARS)
  return view.of === 'staged' ? shellTexts.tabs.staged : shellTexts.tabs.unstaged
}

function foldersOf({ path }: PathView): readonly string[] {
  return path.split('/').slice(0, -1)
}

/** As many of the last folders of a path as no other one ends with. */
function distinguishingFolders(view: PathView, others: readonly PathView[]): string {
  const folders = foldersOf(view)
  const end = (all: readonly string[], count: number): string => all.slice(-count).join('/')
  const isAlike = (count: number): boolean =>
    others.some((other) => end(foldersOf(other), count) === end(folders, count))
  let count = 1
  while (count < folders.length && isAlike(count)) count += 1
  const told = end(folders, count)
  return told === '' ? '' : displayName(count < folders.length ? `…/${told}` : told)
}

/** What tells a file or a difference apart from those of its title: the folder, and where that is the same what else is not. */
function positionOf({ view, sandboxName }: Titled<PathView>, others: readonly Titled<PathView>[]): string {
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
    place: positionOf(one, others),
    hint: shellTexts.tabs.pathHint(what, one.sandboxName),
  }
}

/** Shells of one name have numbers in the order of their tabs; those of other sandboxes say which they are in. */
function labelShell(one: Titled, all: readonly Titled[]): TabLabel {
  const { title, sandboxName } = one
  const named = all.filter(({ view, title: other }) => view.kind === 'terminal' && other === title)
  const alike = named.filter((other) => other.sandboxName === sandboxName)
  const number = alike.indexOf(one) + 1
  const name = number > 1 ? `${title} ${number}` : title
  const place = alike.length < named.length && title !== sandboxName ? sandboxName : ''
  return { name, place, hint: shellTexts.tabs.terminalHint(name, sandboxName) }
}

/** What each tab says, by its id: its own name, or that of what is in it so that no two look alike. */
export function labelTabs(
  { tabs, views }: Layout,
  { titles, nameSandbox }: LabelContext,
): ReadonlyMap<string, TabLabel> {
  const own = new Map(tabs.map(({ id, name }) => [id, name]))
  const titled = tabs.flatMap(({ id, focus }): readonly Titled[] => {
    const view = views[focus]
    if (view === undefined) return []
    const sandboxName = nameSandbox(view.sandbox)
    const told = view.kind === 'terminal' ? titles[view.session ?? ''] : undefined
    return [{ id, view, title: titleOf(view, told, sandboxName), sandboxName }]
  })
  // A name that was given is nobody's double.
  const all = titled.filter(({ id }) => own.get(id) === undefined)
  return new Map(
    titled.map((one) => {
      const label = isPath(one) ? labelPath(one, all) : labelShell(one, all)
      const name = own.get(one.id)
      return [one.id, name === undefined ? label : { ...label, name, place: '' }]
    }),
  )
}
