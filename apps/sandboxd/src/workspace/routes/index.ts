import { FILES_ROUTES } from './files-routes.ts'
import { GIT_ROUTES } from './git-routes.ts'
import { SEARCH_ROUTES } from './search-routes.ts'
import { TRANSFER_ROUTES } from './transfer-routes.ts'
import { WATCH_ROUTES } from './watch-routes.ts'
import type { WorkspaceRoutes } from './route.ts'

/** Every route of the workspace: a topic is a file of this folder and a line here. */
export const WORKSPACE_ROUTES: WorkspaceRoutes = {
  ...FILES_ROUTES,
  ...GIT_ROUTES,
  ...SEARCH_ROUTES,
  ...WATCH_ROUTES,
  ...TRANSFER_ROUTES,
}
