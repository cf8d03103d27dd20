import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { CommandPalette } from './command-palette.tsx'
import { QuickOpen } from './quick-open.tsx'
import { SettingsDialog } from './settings-dialog.tsx'
import { ShortcutSheet } from './shortcut-sheet.tsx'

/** What lies over the page, one at a time. */
export function Overlays(): ReactElement | null {
  const { workbench, terminals } = useParts()
  const overlay = useStore(workbench.overlay)
  const close = (): void => {
    workbench.showOverlay(undefined)
    terminals.focusActive()
  }
  switch (overlay) {
    case undefined:
      return null
    case 'commands':
      return <CommandPalette onClose={close} />
    case 'files':
      return <QuickOpen onClose={close} />
    case 'keys':
      return <ShortcutSheet onClose={close} />
    case 'settings':
      return <SettingsDialog onClose={close} />
  }
}
