/** Environment of the system's tools: found wherever we were started from, and speaking one language. */
export const SYSTEM_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
}

/** Path of a tool of the system, on this user's PATH or in the usual places; null when it is not installed. */
export function findTool(name: string): string | null {
  const places = [process.env['PATH'], SYSTEM_ENV['PATH']].filter((each) => each !== undefined)
  return Bun.which(name, { PATH: places.join(':') })
}

/** Runs a tool of the system to its end; throws with the first line it said when it fails. */
export async function runTool(argv: readonly string[]): Promise<void> {
  const child = Bun.spawn([...argv], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', env: SYSTEM_ENV })
  const said = await new Response(child.stderr).text()
  if ((await child.exited) !== 0)
    throw new Error(`Cannot run ${argv[0] ?? ''}: ${said.split('\n')[0] ?? 'it failed'}`)
}

/**
 * For sandboxd: milliseconds until its allocator gives freed memory back. By default it does so at once, and a flood of
 * output gets and gives back the same pages all the time.
 */
export const DAEMON_MEMORY = { MIMALLOC_PURGE_DELAY: '50' } as const
