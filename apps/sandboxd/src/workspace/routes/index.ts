import { FILES_ROUTES } from './files-routes.ts'
import { SEARCH_ROUTES } from './search-routes.ts'
import type { WorkspaceRoutes } from './route.ts'

/** Every route of the workspace: a topic is a file of this folder and a line here. */
export const WORKSPACE_ROUTES: WorkspaceRoutes = {
  ...FILES_ROUTES,
  ...SEARCH_ROUTES,
}

/** Those whose errors have the shape of the contract, `{"detail": …}`. */
export const CONTRACT_PREFIX = '/workspace/contract/'
