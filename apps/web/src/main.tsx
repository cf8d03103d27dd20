import './style/tokens.css'
import './style/base.css'
import './style/shell.css'
import './style/panels.css'
import './style/files.css'
import './style/git.css'
import './style/search.css'
import './style/terminal.css'
import './style/tmux.css'
import './style/versions.css'
import './style/agents.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { AgentList, isShownBy, textOf } from './agents/agent-list.ts'
import { notifyOutside } from './agents/notify.ts'
import { openItem, titleOf } from './agents/open-agent.ts'
import { onSignInChange } from './api/identity.ts'
import { UNAUTHORIZED_EVENT } from './api/request.ts'
import { writeFile } from './api/workspace.ts'
import { PageDrops } from './files/drops.tsx'
import { OpenFiles } from './files/open-files.ts'
import { openFileFromTerminal } from './files/open-from-terminal.ts'
import { Uploads } from './files/uploads.ts'
import { WorkspaceWatch } from './files/workspace-watch.ts'
import { focusedView } from './layout/layout.ts'
import { PanelMemory, PanelMemoryContext } from './panels/panel-memory.ts'
import { App } from './shell/app.tsx'
import { hidePanelOnNarrowScreens } from './shell/side-bar.tsx'
import { followTheme, isDarkNow } from './shell/theme.ts'
import { PartsContext } from './state/context.ts'
import { DirtyViews } from './state/dirty-views.ts'
import { Workbench } from './state/workbench.ts'
import { Terminals } from './terminals/terminals.ts'
import { agentTexts } from './texts/agents.ts'
import { versionTexts } from './texts/versions.ts'
import { FileStatuses, followSelection } from './versions/file-status.ts'

const workbench = new Workbench(localStorage, sessionStorage)
const terminals = new Terminals(workbench, {
  openFile: (sandbox, location) => openFileFromTerminal(workbench, sandbox, location),
  isDark: () => isDarkNow(workbench.settings.get().theme),
})
const dirty = new DirtyViews()
const files = new OpenFiles(workbench, dirty)
const drops = new PageDrops(workbench)
drops.listen(window)
const uploads = new Uploads(writeFile)
const fileStatuses = new FileStatuses(({ name }, { savedMs }) =>
  workbench.notify('error', versionTexts.lost(name, new Date(savedMs).toLocaleString())),
)
followSelection(workbench, fileStatuses)
const watch = new WorkspaceWatch()
const agents = new AgentList((item) => {
  const open = (): void => openItem(workbench, item)
  if (isShownBy(item, focusedView(workbench.layout.get())) && !document.hidden) return
  const title = titleOf(textOf(item))
  const text = title === '' ? agentTexts.waits : agentTexts.waitsAt(title)
  workbench.notify('info', text, { label: agentTexts.open, run: open })
  notifyOutside(item, open)
})
const parts = { workbench, terminals, watch, files, dirty, drops, uploads, agents, fileStatuses }
const panelMemory = new PanelMemory()
followTheme(workbench.settings, () => terminals.redraw())
window.addEventListener('pagehide', (event: PageTransitionEvent) => {
  // A page in the back/forward cache stays attached.
  if (!event.persisted) terminals.leave()
})
window.addEventListener('beforeunload', (event) => {
  // Unsaved text and running uploads would be lost.
  if (dirty.views.get().size > 0 || uploads.running.get().length > 0) event.preventDefault()
})
hidePanelOnNarrowScreens(workbench)
const isSignedOut = (): boolean => {
  const user = workbench.user.get()
  return user.kind === 'ready' && user.value === undefined
}
window.addEventListener(UNAUTHORIZED_EVENT, () => void workbench.recheckUser())
onSignInChange(async () => {
  const wasOut = isSignedOut()
  await workbench.checkUser()
  // Disconnected terminals restart with a reload; unsaved text would be lost by it.
  if (wasOut && !isSignedOut() && parts.dirty.views.get().size === 0) location.reload()
})
const root = document.querySelector('#root')
if (root === null) throw new Error('The page has no place to draw in')
void workbench.open(new AbortController().signal)
createRoot(root).render(
  <StrictMode>
    <PartsContext value={parts}>
      <PanelMemoryContext value={panelMemory}>
        <App />
      </PanelMemoryContext>
    </PartsContext>
  </StrictMode>,
)
