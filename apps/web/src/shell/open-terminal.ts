import { schema } from '@sandwire/protocol'
import {
  activeTab,
  focusedView,
  focusView,
  isDeepest,
  openTab,
  reveal,
  splitView,
  type View,
} from '../layout/layout.ts'
import { changeTmux, readTmux } from '../api/tmux.ts'
import { canHalve } from '../layout/pane-tree.ts'
import { canWork, canWorkIn, firstSandboxOf } from '../state/rights.ts'
import type { Workbench } from '../state/workbench.ts'
import { shellTexts } from '../texts/shell.ts'
import { tmuxTexts } from '../texts/tmux.ts'

/** The sandbox for a new terminal: that of the focused pane, the selected one, or a new one. */
function sandboxForTerminal(workbench: Workbench): string | undefined {
  const user = workbench.user.get()
  const focused = focusedView(workbench.layout.get())
  const wanted = [focused?.sandbox, workbench.current.get()].filter((sandbox) => sandbox !== undefined)
  return wanted.find((sandbox) => canWorkIn(user, workbench.sandboxes.get(), sandbox)) ?? firstSandboxOf(user)
}

/** True when the user can start a shell anywhere; notifies otherwise, since shortcuts work for everyone. */
function canStart(workbench: Workbench): boolean {
  if (canWork(workbench.user.get(), workbench.sandboxes.get())) return true
  workbench.notify('info', shellTexts.panes.noSandbox)
  return false
}

export function openTerminal(workbench: Workbench, sandbox = sandboxForTerminal(workbench)): void {
  if (sandbox === undefined || !canStart(workbench)) return
  workbench.changeLayout((layout) => openTab(layout, { kind: 'terminal', sandbox }, workbench.mint))
}

/** Shows the sandbox's tmux, or focuses the pane that does. */
export function openTmux(workbench: Workbench): void {
  if (!canStart(workbench)) return
  const sandbox = sandboxForTerminal(workbench)
  if (sandbox === undefined) return
  workbench.changeLayout((layout) => reveal(layout, { kind: 'tmux', sandbox }, workbench.mint))
}

/** Splits the active pane of tmux. */
async function splitTmux(workbench: Workbench, sandbox: string, direction: 'row' | 'column'): Promise<void> {
  await workbench.attempt(tmuxTexts.cannotChange, async () => {
    const tmux = await readTmux(sandbox)
    const window = tmux.state === 'running' ? tmux.windows.find(({ isActive }) => isActive) : undefined
    const pane = window?.panes.find(({ isActive }) => isActive)
    const split = { type: 'split', direction: direction === 'row' ? 'right' : 'down' }
    await changeTmux(sandbox, pane === undefined ? { type: 'new_window' } : { ...split, pane: pane.id })
  })
}

/** Opens a session, or focuses the pane that shows it. */
export function joinSession(workbench: Workbench, sandbox: string, session: string): void {
  const view: View = { kind: 'terminal', sandbox, session }
  workbench.changeLayout((layout) => {
    const open = Object.entries(layout.views).find(
      ([, known]) => known.kind === 'terminal' && known.session === session,
    )
    return open === undefined ? openTab(layout, view, workbench.mint) : focusView(layout, open[0])
  })
}

/** Opens what a share link was for: the session, a shell, or the list of sessions. */
export function openSharedTarget(workbench: Workbench, { sandbox, session, role }: OpenTarget): void {
  if (session !== null) joinSession(workbench, sandbox, session)
  else if (role === 'collaborator')
    workbench.changeLayout((layout) => openTab(layout, { kind: 'terminal', sandbox }, workbench.mint))
  else workbench.showPanel('sandboxes')
  workbench.choose(sandbox)
}

/** True when a pane is large enough to split, or not rendered. */
function hasRoom(viewId: string, direction: 'row' | 'column'): boolean {
  const drawn = Array.from(document.querySelectorAll<HTMLElement>('[data-view]')).find(
    ({ dataset }) => dataset['view'] === viewId,
  )
  return drawn === undefined || canHalve(drawn.getBoundingClientRect(), direction)
}

/** Opens a shell beside or below the focused pane, if there is space. */
export function splitTerminal(workbench: Workbench, direction: 'row' | 'column'): void {
  if (!canStart(workbench)) return
  const layout = workbench.layout.get()
  const focused = focusedView(layout)
  if (focused?.kind === 'tmux') {
    void splitTmux(workbench, focused.sandbox, direction)
    return
  }
  const sandbox = sandboxForTerminal(workbench)
  if (sandbox === undefined) return
  const view: View = { kind: 'terminal', sandbox }
  const at = activeTab(layout)?.focus ?? ''
  if (isDeepest(layout, at) || !hasRoom(at, direction)) workbench.notify('info', shellTexts.panes.tooSmall)
  else workbench.changeLayout((old) => splitView(old, at, { view, direction }, workbench.mint))
}

/** Session storage entry in which the join page leaves what to open. */
const KEY = 'sandwire.open'

const arrival = schema.record({
  sandbox: schema.text(128),
  session: schema.nullable(schema.text(256)),
  role: schema.oneOf(['viewer', 'collaborator']),
})

/** What a share link was for. It names a session or sandbox, and grants nothing. */
export interface OpenTarget {
  readonly sandbox: string
  readonly session: string | null
  readonly role: 'viewer' | 'collaborator'
}

/** Reads and removes the entry; undefined when it is missing or invalid. */
export function takeOpenTarget(storage: Pick<Storage, 'getItem' | 'removeItem'>): OpenTarget | undefined {
  const text = storage.getItem(KEY)
  if (text === null) return undefined
  storage.removeItem(KEY)
  try {
    return arrival.decode(JSON.parse(text))
  } catch {
    // Not ours.
    return undefined
  }
}
