import { WORKSPACE_ROUTES as DEFINITIONS } from '@sandwire/internal-api'
import { FILE_HANDLERS } from './files-routes.ts'
import { GIT_HANDLERS } from './git-routes.ts'
import { createRoutes } from './route.ts'
import { SEARCH_HANDLERS, WATCH_HANDLERS } from './search-routes.ts'
import { TMUX_HANDLERS } from '../../tmux/tmux-routes.ts'
import { TRANSFER_HANDLERS } from './transfer-routes.ts'

/** Every native file route. */
export const WORKSPACE_ROUTES = createRoutes(
  // Control answers HEAD with the headers of GET; sandboxd does not open a stream for it.
  { ...DEFINITIONS, 'HEAD /workspace/file': DEFINITIONS['GET /workspace/file'] },
  {
    ...FILE_HANDLERS,
    ...GIT_HANDLERS,
    ...SEARCH_HANDLERS,
    ...WATCH_HANDLERS,
    ...TRANSFER_HANDLERS,
    ...TMUX_HANDLERS,
  },
)
