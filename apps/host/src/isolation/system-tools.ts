/** Environment of system tools: fixed PATH and language. */
export const SYSTEM_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
}

/** Path of a system tool, on this user's PATH or in standard folders; null when not installed. */
export function findTool(name: string): string | null {
  const paths = [process.env['PATH'], SYSTEM_ENV['PATH']].filter((each) => each !== undefined)
  return Bun.which(name, { PATH: paths.join(':') })
}

/** True when a command prefix, such as `setpriv …`, works on this machine. Checked by running it. */
export function canRun(prefix: readonly string[]): boolean {
  try {
    return Bun.spawnSync([...prefix, 'true'], {
      env: { ...SYSTEM_ENV },
      stdio: ['ignore', 'ignore', 'ignore'],
    }).success
  } catch {
    // Not installed.
    return false
  }
}

/** Runs a system tool; throws with its first line of stderr when it fails. */
export async function runTool(argv: readonly string[]): Promise<void> {
  const child = Bun.spawn([...argv], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', env: SYSTEM_ENV })
  const stderr = await new Response(child.stderr).text()
  if ((await child.exited) !== 0)
    throw new Error(`Cannot run ${argv[0] ?? ''}: ${stderr.split('\n')[0] ?? 'it failed'}`)
}

/**
 * sandboxd's allocator returns freed memory after these milliseconds. By default it does so immediately, and heavy output
 * allocates and frees the same pages all the time.
 */
export const DAEMON_MEMORY = { MIMALLOC_PURGE_DELAY: '50' } as const
