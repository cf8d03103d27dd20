import { createStore } from '@sandwire/client'
import { useStore } from '@sandwire/react'
import { useEffect } from 'react'
import { displayName } from '../files/display-name.ts'
import { activeTab, type View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { nameSandbox } from '../state/sandbox-names.ts'
import { agentTexts } from '../texts/agents.ts'
import { shellTexts } from '../texts/shell.ts'
import { tmuxTexts } from '../texts/tmux.ts'

/** The last part of a path. */
export function baseName(path: string): string {
  return path.split('/').pop() ?? path
}

/** The display name of a sandbox, by its id. */
export function useSandboxName(sandbox: string): string {
  const { workbench } = useParts()
  const names = useStore(workbench.names.all)
  const user = useStore(workbench.user)
  return nameSandbox(sandbox, names, user.kind === 'ready' && user.value?.guest === true)
}

/** The title of a view. */
export function titleOf(
  view: View | undefined,
  terminalTitle: string | undefined,
  sandboxName: string,
): string {
  if (view === undefined) return shellTexts.tabs.empty
  switch (view.kind) {
    case 'terminal':
      return terminalTitle === undefined || terminalTitle === '' ? sandboxName : terminalTitle
    case 'tmux':
      return tmuxTexts.title
    case 'run':
    case 'conversation':
      return agentTexts.tabOf(view.title)
    case 'file':
      return displayName(baseName(view.path))
    case 'diff':
      return shellTexts.tabs.changes(displayName(baseName(view.path)))
  }
}

const NO_STATE = createStore(undefined)
const PRODUCT = 'Sandwire'

/** The kind and title of a view. The kind comes first, since programs and files choose their titles and could pose as others. */
function kindAndTitle(view: View, programTitle: string): string {
  switch (view.kind) {
    case 'terminal':
      return programTitle === ''
        ? shellTexts.pageTitles.terminal
        : shellTexts.pageTitles.program(programTitle)
    case 'tmux':
      return tmuxTexts.title
    case 'run':
    case 'conversation':
      return agentTexts.tabOf(view.title)
    case 'file':
      return shellTexts.pageTitles.file(displayName(baseName(view.path)))
    case 'diff':
      return shellTexts.pageTitles.changes(displayName(baseName(view.path)))
  }
}

/** The document title: view or the user's name for the tab, sandbox and product. */
export function pageTitle(
  view: View | undefined,
  {
    tabName,
    programTitle = '',
  }: { readonly tabName?: string | undefined; readonly programTitle?: string | undefined },
  sandboxName: string,
): string {
  if (view === undefined) return PRODUCT
  return [tabName ?? kindAndTitle(view, programTitle), sandboxName, PRODUCT].join(' — ')
}

/** Keeps the document title up to date while mounted. */
export function useDocumentTitle(): void {
  const { workbench, terminals } = useParts()
  const layout = useStore(workbench.layout)
  const tab = activeTab(layout)
  const view = layout.views[tab?.focus ?? '']
  const sandboxName = useSandboxName(view?.sandbox ?? '')
  const state = useStore(terminals.find(tab?.focus ?? '')?.state ?? NO_STATE)
  const user = useStore(workbench.user)
  const isOut = user.kind === 'ready' && user.value === undefined
  // While signed out, the title must not reveal what is open.
  const title = pageTitle(
    isOut ? undefined : view,
    { tabName: tab?.name, programTitle: state?.title },
    sandboxName,
  )
  useEffect(() => {
    document.title = title
    return () => {
      document.title = PRODUCT
    }
  }, [title])
}
