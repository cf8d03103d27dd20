import { createStore } from '@sandwire/client'
import { useStore } from '@sandwire/react'
import { useEffect } from 'react'
import { displayName } from '../files/display-name.ts'
import { activeTab, type View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { nameSandbox } from '../state/sandbox-names.ts'
import { shellTexts } from '../texts/shell.ts'

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
    case 'file':
      return displayName(baseName(view.path))
    case 'diff':
      return shellTexts.tabs.changes(displayName(baseName(view.path)))
  }
}

const NO_STATE = createStore(undefined)
const PRODUCT = 'Sandwire'

/** The document title: view, sandbox and product. */
export function pageTitle(view: View | undefined, name: string | undefined, sandboxName: string): string {
  if (view === undefined) return PRODUCT
  const own = name === undefined || name === '' ? titleOf(view, shellTexts.tabs.terminal, sandboxName) : name
  return [own, sandboxName, PRODUCT].join(' — ')
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
  const title = pageTitle(isOut ? undefined : view, tab?.name ?? state?.title, sandboxName)
  useEffect(() => {
    document.title = title
    return () => {
      document.title = PRODUCT
    }
  }, [title])
}
