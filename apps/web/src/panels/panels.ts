import type { ComponentType } from 'react'
import { lazyPart } from '../parts/lazy-part.tsx'
import type { IconName } from '../shell/icon.tsx'
import { SandboxesPanel } from './sandboxes/sandboxes-panel.tsx'

/** Something to look at beside the panes. */
export interface Panel {
  readonly id: string
  readonly label: string
  readonly icon: IconName
  /** It is about what is in a sandbox, which not everybody may see. */
  readonly isForWork: boolean
  readonly Body: ComponentType
}

export const PANELS: readonly Panel[] = [
  { id: 'sandboxes', label: 'Sandboxes', icon: 'box', isForWork: false, Body: SandboxesPanel },
  {
    id: 'files',
    label: 'Files',
    icon: 'files',
    isForWork: true,
    Body: lazyPart(async () => (await import('../files/files-panel.tsx')).FilesPanel),
  },
  {
    id: 'search',
    label: 'Search',
    icon: 'search',
    isForWork: true,
    Body: lazyPart(async () => (await import('../search/search-panel.tsx')).SearchPanel),
  },
  {
    id: 'git',
    label: 'Git',
    icon: 'git',
    isForWork: true,
    Body: lazyPart(async () => (await import('../git/git-panel.tsx')).GitPanel),
  },
]
