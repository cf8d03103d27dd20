import { inodesFor } from './disk-image.ts'
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

/** `du` follows no links and stays on one file system, whatever the sandbox does to its folders meanwhile. */
async function usage(folder: string, what: '--block-size=1' | '--inodes'): Promise<number> {
  const child = Bun.spawn(['du', '--summarize', '--one-file-system', what, '--', folder], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    env: SYSTEM_ENV,
    timeout: LOOK_MS,
  })
  return sumOfLines(await new Response(child.stdout).text())
}

/** Ends a sandbox whose files are more than it may have, where its disk has no size of its own. */
export function watchDisk(folder: string, limitBytes: number, endSandbox: () => void): Watch {
  return {
    everyMs: EVERY_MS,
    look: async () => {
      const isOver =
        (await usage(folder, '--block-size=1')) > limitBytes ||
        (await usage(folder, '--inodes')) > inodesFor(limitBytes)
      if (isOver) endSandbox()
    },
  }
}
