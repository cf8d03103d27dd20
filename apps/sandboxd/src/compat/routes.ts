import { COMPAT_WORKSPACE_ROUTES } from '@sandwire/internal-api'
import { createRoutes } from '../workspace/routes/route.ts'
import { FILE_HANDLERS } from './file-routes.ts'
import { GIT_HANDLERS } from './git-routes.ts'
import { SEARCH_HANDLERS } from './search-routes.ts'

/** Path prefix of the compat API's file routes. Its errors are `{"detail": …}`. */
export const COMPAT_PREFIX = '/workspace/compat/'

/** File routes of the compat API, over the same functions as the native file routes. */
export const COMPAT_ROUTES = createRoutes(COMPAT_WORKSPACE_ROUTES, {
  ...FILE_HANDLERS,
  ...GIT_HANDLERS,
  ...SEARCH_HANDLERS,
})
