import { type ComponentType, lazy } from 'react'
import type { IconName } from '../shell/icon.tsx'
import { SandboxesPanel } from './sandboxes/sandboxes-panel.tsx'

/** Something to look at beside the panes. */
export interface Panel {
  readonly id: string
  readonly label: string
  readonly icon: IconName
  readonly Body: ComponentType
}

export const PANELS: readonly Panel[] = [
  { id: 'sandboxes', label: 'Sandboxes', icon: 'box', Body: SandboxesPanel },
  {
    id: 'files',
    label: 'Files',
    icon: 'files',
    Body: lazy(async () => ({ default: (await import('../files/files-panel.tsx')).FilesPanel })),
  },
  {
    id: 'search',
    label: 'Search',
    icon: 'search',
    Body: lazy(async () => ({ default: (await import('../search/search-panel.tsx')).SearchPanel })),
  },
  {
    id: 'git',
    label: 'Git',
    icon: 'git',
    Body: lazy(async () => ({ default: (await import('../git/git-panel.tsx')).GitPanel })),
  },
]
