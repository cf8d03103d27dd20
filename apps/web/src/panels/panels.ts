import type { ComponentType } from 'react'
import { lazyPart } from '../parts/lazy-part.tsx'
import type { IconName } from '../shell/icon.tsx'
import { SandboxesPanel } from './sandboxes/sandboxes-panel.tsx'
import { shellTexts } from '../texts/shell.ts'

/** A panel of the side bar. */
interface Panel {
  readonly id: string
  readonly label: string
  readonly icon: IconName
  /** Shown only to users who can work in a sandbox. */
  readonly needsSandbox: boolean
  readonly Body: ComponentType
}

export const PANELS: readonly Panel[] = [
  {
    id: 'sandboxes',
    label: shellTexts.panels.sandboxes,
    icon: 'box',
    needsSandbox: false,
    Body: SandboxesPanel,
  },
  {
    id: 'files',
    label: shellTexts.panels.files,
    icon: 'files',
    needsSandbox: true,
    Body: lazyPart(async () => (await import('../files/files-panel.tsx')).FilesPanel),
  },
  {
    id: 'search',
    label: shellTexts.panels.search,
    icon: 'search',
    needsSandbox: true,
    Body: lazyPart(async () => (await import('../search/search-panel.tsx')).SearchPanel),
  },
  {
    id: 'git',
    label: shellTexts.panels.git,
    icon: 'git',
    needsSandbox: true,
    Body: lazyPart(async () => (await import('../git/git-panel.tsx')).GitPanel),
  },
  {
    id: 'agents',
    label: shellTexts.panels.agents,
    icon: 'agent',
    needsSandbox: true,
    Body: lazyPart(async () => (await import('../agents/agents-panel.tsx')).AgentsPanel),
  },
  {
    id: 'versions',
    label: shellTexts.panels.versions,
    icon: 'history',
    needsSandbox: true,
    Body: lazyPart(async () => (await import('../versions/versions-panel.tsx')).VersionsPanel),
  },
]
