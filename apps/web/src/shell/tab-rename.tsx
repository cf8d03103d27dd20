import type { ReactElement } from 'react'
import { MAX_TAB_NAME, renameTab, type Tab } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { shellTexts } from '../texts/shell.ts'

/** Where a tab is given a name. */
export function TabRename({ tab }: { readonly tab: Tab }): ReactElement {
  const { workbench, terminals } = useParts()
  const rename = (name: string): void => workbench.changeLayout((layout) => renameTab(layout, tab.id, name))
  const end = (): void => {
    workbench.startRename(undefined)
    terminals.focusActive()
  }
  return (
    <input
      className="tab-rename"
      aria-label={shellTexts.tabs.name}
      maxLength={MAX_TAB_NAME}
      defaultValue={tab.name ?? ''}
      autoFocus
      onBlur={(event) => {
        if (workbench.renaming.get() !== tab.id) return
        rename(event.target.value)
        workbench.startRename(undefined)
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return
        if (event.key === 'Enter') rename(event.currentTarget.value)
        // The terminal, which has the keyboard next, is not to get this key as well.
        event.preventDefault()
        end()
      }}
    />
  )
}
