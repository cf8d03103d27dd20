import path from 'node:path'
import { realpathSync } from 'node:fs'
import { INSIDE_PROGRAMS } from './bwrap-argv.ts'
import { type DaemonProgram, INSIDE } from './isolation.ts'
import { agentsFolder, openAgentsFolder } from '../agents/agents-folder.ts'

/** A folder of this machine that sandboxes have read-only, each through an overlay of its own. */
export interface SharedFolder {
  readonly from: string
  /** Where sandboxes have it. */
  readonly to: string
  /** Only this file of the folder, with `to` as its path. */
  readonly file?: string
  /** True when its path must not be visible in sandboxes. */
  readonly isPrivate?: boolean
}

/** sandboxd in a sandbox. */
export const INSIDE_DAEMON = {
  executable: `${INSIDE_PROGRAMS}/executable`,
  code: `${INSIDE_PROGRAMS}/code`,
} as const

/**
 * A program for sandboxes, as `/opt/sandwire/NAME`. Every program that ships with Sandwire is shared this way, from a version folder
 * (`version-folder.ts`): a running sandbox keeps its version, and sees no other files.
 */
function shareProgram(name: string, folder: string): SharedFolder {
  return { from: folder, to: path.join(INSIDE_PROGRAMS, name), isPrivate: true }
}

/** sandboxd: its executable, without its neighbors in the folder, and its bundle. */
export function shareDaemon({ executable, code }: DaemonProgram): SharedFolder[] {
  const file = realpathSync(executable)
  return [
    {
      from: path.dirname(file),
      to: INSIDE_DAEMON.executable,
      file: path.basename(file),
      isPrivate: true,
    },
    ...(code === undefined ? [] : [shareProgram('code', code.folder)]),
  ]
}

/** Programs of coding agents that the operator installed; those that are installed later are visible from the next start on. */
export function shareAgents(dataFolder: string): SharedFolder {
  openAgentsFolder(dataFolder)
  return { from: agentsFolder(dataFolder), to: INSIDE.agents, isPrivate: true }
}
