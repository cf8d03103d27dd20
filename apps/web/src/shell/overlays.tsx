import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { FileChooser } from '../files/file-chooser.tsx'
import { CommandPalette } from './command-palette.tsx'
import { QuickOpen } from './quick-open.tsx'
import { SettingsDialog } from './settings-dialog.tsx'
import { ShortcutSheet } from './shortcut-sheet.tsx'

/** What lies over the page, one at a time. */
export function Overlays(): ReactElement | null {
  const { workbench, terminals } = useParts()
  const overlay = useStore(workbench.overlay)
  const choice = useStore(terminals.choosing)
  const close = (): void => {
    workbench.showOverlay(undefined)
    terminals.focusActive()
  }
  if (choice !== undefined) return <FileChooser choice={choice} onClose={() => terminals.endChoice()} />
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
