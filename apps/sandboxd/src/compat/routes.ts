import type { WorkspaceRoutes } from '../workspace/routes/route.ts'
import { FILE_ROUTES } from './file-routes.ts'
import { GIT_ROUTES } from './git-routes.ts'
import { SEARCH_ROUTES } from './search-routes.ts'

/** Path prefix of the older front end's file API. Its errors are `{"detail": …}`. */
export const COMPAT_PREFIX = '/workspace/compat/'

/** Routes of that API, over the same functions as the workspace's own routes. */
export const COMPAT_ROUTES: WorkspaceRoutes = { ...FILE_ROUTES, ...GIT_ROUTES, ...SEARCH_ROUTES }
