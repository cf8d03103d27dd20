import type { WorkspaceRoute as RouteDefinition } from '@sandwire/internal-api'
import type { Caller } from '../../caller.ts'
import type { Files } from '../files.ts'
import type { TmuxService } from '../../tmux/tmux-service.ts'
import type { GitLocks } from '../git/git-locks.ts'
import type { GitScratch } from '../git/private-config.ts'
import type { Semaphore } from '../semaphore.ts'
import type { RunTool } from '../tool.ts'
import type { TransferFiles } from '../transfer/transfer-files.ts'
import type { Uploads } from '../transfer/uploads.ts'
import type { WatchService } from '../watch/watch-service.ts'

/** What the file routes need. */
export interface Workspace {
  readonly files: Files
  readonly runTool: RunTool
  /** Where git gets its configuration from. */
  readonly gitScratch: GitScratch
  readonly gitLocks: GitLocks
  /** Path of ripgrep, or its name on PATH. */
  readonly ripgrep: string
  readonly watches: WatchService
  readonly tmux: TmuxService
  readonly transfer: TransferFiles
  readonly uploads: Uploads
  /** Memory for texts and listings. */
  readonly texts: Semaphore
  /** Concurrent archives: each holds a few MiB while it is read. */
  readonly archives: Semaphore
  /** Memory for results of name searches. */
  readonly searches: Semaphore
  /** Absolute path of the workspace, for messages only, never for access. */
  readonly root: string
}

/** The input of a route. */
export interface WorkspaceCall {
  readonly request: Request
  readonly url: URL
  readonly caller: Caller
  readonly requestId: string
  /** Value of `:id` in the path; empty where there is none. */
  readonly id: string
}

/** Handles one route; git needs only a part of the workspace. */
export type WorkspaceHandler<Needs = Workspace> = (
  call: WorkspaceCall,
  deps: { readonly workspace: Needs },
) => Response | Promise<Response>

export interface WorkspaceRoute {
  /** `change` also requires the permission to run commands. */
  readonly access: RouteDefinition['access']
  /** Accepted query parameters; any other is refused. The compat API ignores unknown ones. */
  readonly parameters: readonly string[] | 'any'
  readonly handle: WorkspaceHandler
}

/** Routes by path and method; `:id` in a path matches one segment. */
type WorkspaceRoutes = Readonly<Record<string, Readonly<Record<string, WorkspaceRoute>>>>

/** Adds handlers to the definitions that control and sandboxd share. Both are keyed by `METHOD /path`. */
export function createRoutes<Name extends string>(
  definitions: Readonly<Record<Name, RouteDefinition>>,
  handlers: Readonly<Record<Name, WorkspaceHandler>>,
): WorkspaceRoutes {
  const routes: Record<string, Record<string, WorkspaceRoute>> = {}
  for (const [name, definition] of Object.entries<RouteDefinition>(definitions)) {
    const [method = '', path = ''] = name.split(' ')
    const { access, api } = definition
    const parameters = api === 'compat' ? 'any' : Object.keys(definition.parameters)
    const handle = handlers[name as Name]
    routes[path] = { ...routes[path], [method]: { access, parameters, handle } }
  }
  return routes
}
