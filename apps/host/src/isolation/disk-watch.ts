import { statSync } from 'node:fs'
import { inodesFor } from './disk-image.ts'
import { ownSystemFolders, usrLinks } from './etc-folder.ts'
import { listOpenFiles, sumOnce } from './open-files.ts'
import { descendantsOf, listProcesses } from './process-table.ts'
import { SYSTEM_ENV } from './system-env.ts'
import type { Watch } from './watchdog.ts'

const EVERY_MS = 2_000
/** A look that takes longer is given up; the next one finds more in the cache. */
const LOOK_MS = 60_000

/** Adds up the first column of what `du` says. */
export function sumOfLines(text: string): number {
  return text
    .split('\n')
    .map((line) => Number.parseInt(line, 10))
    .filter((value) => !Number.isNaN(value))
    .reduce((sum, value) => sum + value, 0)
}

/**
 * Start of a command that reads what is in the folders whatever rights they have: the user who owns files may look into them as the root
 * of a user namespace. Root needs nothing of the kind.
 */
function asReader(folders: readonly string[]): string[] {
  if (process.getuid?.() === 0) return []
  const visible = ['/usr', ...ownSystemFolders().map(({ from }) => from), ...folders]
  return [
    'bwrap',
    '--unshare-user',
    '--uid',
    '0',
    '--gid',
    '0',
    '--die-with-parent',
    '--cap-drop',
    'ALL',
    '--cap-add',
    'CAP_DAC_READ_SEARCH',
    ...visible.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...usrLinks().flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    '--',
  ]
}

/** `du` follows no links and stays on one file system, whatever the sandbox does to its folders meanwhile. */
async function usage(folders: readonly string[], what: '--block-size=1' | '--inodes'): Promise<number> {
  const du = ['du', '--summarize', '--one-file-system', what, '--', ...folders]
  const child = Bun.spawn([...asReader(folders), ...du], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    env: SYSTEM_ENV,
    timeout: LOOK_MS,
  })
  return sumOfLines(await new Response(child.stdout).text())
}

/** What files take that processes below `rootPid` hold open and that have no name any more. */
function namelessBytes(rootPid: number, folders: readonly string[]): number {
  const devices = new Set(folders.map((folder) => statSync(folder).dev))
  const open = descendantsOf(rootPid, listProcesses()).flatMap(({ pid }) => listOpenFiles(pid, 'all'))
  return sumOnce(open.filter(({ device, isNamed }) => !isNamed && devices.has(device)))
}

/** A sandbox whose disk has no size of its own. */
export interface WatchedDisk {
  /** Process that everything in the sandbox hangs on. */
  readonly rootPid: number
  /** Where on this machine the sandbox can write. */
  readonly folders: readonly string[]
  readonly limitBytes: number
}

/** Ends a sandbox whose files are more than it may have, where its disk has no size of its own. */
export function watchDisk({ rootPid, folders, limitBytes }: WatchedDisk, endSandbox: () => void): Watch {
  return {
    everyMs: EVERY_MS,
    look: async () => {
      const named = await usage(folders, '--block-size=1')
      const isOver =
        named + namelessBytes(rootPid, folders) > limitBytes ||
        (await usage(folders, '--inodes')) > inodesFor(limitBytes)
      if (isOver) endSandbox()
    },
  }
}
