/** Facts that decide about installing bubblewrap. */
export interface BubblewrapFacts {
  readonly wanted: 'bubblewrap' | 'none' | undefined
  readonly isInstalled: boolean
  readonly isRoot: boolean
  readonly hasApt: boolean
}

/** What to do about bubblewrap. */
export type BubblewrapPlan =
  | { readonly kind: 'use' }
  | { readonly kind: 'install' }
  | { readonly kind: 'without'; readonly reason: string }
  | { readonly kind: 'refuse'; readonly reason: string }

/** Installing may download package lists over a slow connection; longer than this it hangs. */
const INSTALL_TIMEOUT_MS = 5 * 60_000
/** The reason is part of one line. */
const MAX_REASON_CHARS = 200

const APT = ['apt-get', 'install', '--yes', '--quiet', '--no-install-recommends', 'bubblewrap']

export function planBubblewrap(facts: BubblewrapFacts): BubblewrapPlan {
  if (facts.wanted === 'none') return { kind: 'without', reason: 'SANDWIRE_ISOLATION is none' }
  if (facts.isInstalled) return { kind: 'use' }
  if (facts.isRoot && facts.hasApt) return { kind: 'install' }
  const reason = facts.hasApt
    ? 'bubblewrap is not installed, and installing it needs root'
    : 'bubblewrap is not installed'
  return { kind: facts.wanted === 'bubblewrap' ? 'refuse' : 'without', reason }
}

/** Runs a command; returns why it failed, or undefined. */
type Run = (argv: readonly string[]) => Promise<string | undefined>

/**
 * Installs Debian's package; returns why that failed, or undefined. Package lists are updated only after a failure, because that
 * takes seconds.
 */
export async function installBubblewrap(run: Run = runQuietly): Promise<string | undefined> {
  if ((await run(APT)) === undefined) return undefined
  return (await run(['apt-get', 'update', '--quiet'])) ?? (await run(APT))
}

/** The first error in apt-get's output, without control characters. */
export function findReason(stderr: string): string {
  const line = stderr.split('\n').find((each) => each.startsWith('E: ')) ?? ''
  const reason = line
    .slice('E: '.length)
    .replace(/\p{C}+/gu, ' ')
    .trim()
  return reason === '' ? 'apt-get failed' : reason.slice(0, MAX_REASON_CHARS)
}

async function runQuietly(argv: readonly string[]): Promise<string | undefined> {
  const child = Bun.spawn([...argv], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    timeout: INSTALL_TIMEOUT_MS,
  })
  const stderr = await new Response(child.stderr).text()
  if ((await child.exited) === 0) return undefined
  return child.signalCode === null ? findReason(stderr) : 'apt-get took too long'
}
