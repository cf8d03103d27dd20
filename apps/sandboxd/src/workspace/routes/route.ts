import type { Caller } from '../../caller.ts'
import type { Files } from '../files.ts'
import type { TextRoom } from '../text-room.ts'
import type { ToolSlots } from '../tool-slots.ts'
import type { RunTool } from '../tool.ts'
import type { TransferFiles } from '../transfer/transfer-files.ts'
import type { Uploads } from '../transfer/uploads.ts'
import type { WatchService } from '../watch/watch-service.ts'

/** What the routes of a workspace work with. */
export interface Workspace {
  readonly files: Files
  readonly runTool: RunTool
  /** Path of ripgrep, or its name on PATH. */
  readonly ripgrep: string
  readonly watches: WatchService
  readonly transfer: TransferFiles
  readonly uploads: Uploads
  /** For texts and listings that are held as a whole. */
  readonly texts: TextRoom
  /** For folders that are packed: each holds some MiB for as long as it is read. */
  readonly archives: ToolSlots
  /** For what is found by name. */
  readonly searches: TextRoom
  /** Absolute path of the workspace, to name it; never to reach into it. */
  readonly root: string
}

/** What a route is given. */
export interface WorkspaceCall {
  readonly request: Request
  readonly url: URL
  readonly caller: Caller
  readonly requestId: string
  /** The segment that `:id` stands for, or an empty text. */
  readonly id: string
}

export interface WorkspaceRoute {
  /** Whoever may drive may read; to change something takes the right to run commands as well. */
  readonly right: 'read' | 'change'
  /** Parameters that it takes; all others are refused, unless it ignores them. */
  readonly parameters: readonly string[] | 'any'
  readonly handle: (
    call: WorkspaceCall,
    deps: { readonly workspace: Workspace },
  ) => Response | Promise<Response>
}

/** Routes by path and method; `:id` in a path is any one segment. */
export type WorkspaceRoutes = Readonly<Record<string, Readonly<Record<string, WorkspaceRoute>>>>
