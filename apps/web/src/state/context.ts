import { createContext, useContext } from 'react'
import type { AgentList } from '../agents/agent-list.ts'
import type { PageDrops } from '../files/drops.tsx'
import type { OpenFiles } from '../files/open-files.ts'
import type { Uploads } from '../files/uploads.ts'
import type { WorkspaceWatch } from '../files/workspace-watch.ts'
import type { Terminals } from '../terminals/terminals.ts'
import type { FileStatuses } from '../versions/file-status.ts'
import type { DirtyViews } from './dirty-views.ts'
import type { Workbench } from './workbench.ts'

export interface Parts {
  readonly workbench: Workbench
  readonly terminals: Terminals
  readonly watch: WorkspaceWatch
  readonly files: OpenFiles
  readonly dirty: DirtyViews
  readonly drops: PageDrops
  readonly uploads: Uploads
  readonly agents: AgentList
  /** Whether the files of the selected sandbox are saved. */
  readonly fileStatuses: FileStatuses
}

export const PartsContext = createContext<Parts | undefined>(undefined)

/** The objects that all components use. */
export function useParts(): Parts {
  const parts = useContext(PartsContext)
  if (parts === undefined) throw new Error('The page was drawn without its parts')
  return parts
}
