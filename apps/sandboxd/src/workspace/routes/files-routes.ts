import type { WorkspaceRoutes } from './route.ts'

/** Reading and changing files. */
export const FILES_ROUTES: WorkspaceRoutes = {}
