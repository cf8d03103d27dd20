import path from 'node:path'
import { ensureFolder } from '../isolation/sandbox-folders.ts'

/** Folder of agents' programs, `NAME/VERSION/`. Sandboxes have it read-only as `/opt/agents`. */
export function agentsFolder(dataFolder: string): string {
  return path.join(dataFolder, 'agents')
}

/** Creates the folder; users of sandboxes must be able to read it. */
export function openAgentsFolder(dataFolder: string): void {
  ensureFolder(agentsFolder(dataFolder), 0o755)
}
