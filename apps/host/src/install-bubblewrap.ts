/** What this machine offers for isolation, and what was asked for. */
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

/** Installing can fetch package lists over a slow line; longer than this it hangs. */
const INSTALL_TIMEOUT_MS = 5 * 60_000

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

/** Installs Debian's package. Its lists are often fresh enough; fetching them first would cost seconds every time. */
export async function installBubblewrap(
  run: (argv: readonly string[]) => Promise<boolean> = runQuietly,
): Promise<boolean> {
  if (await run(APT)) return true
  return (await run(['apt-get', 'update', '--quiet'])) && (await run(APT))
}

async function runQuietly(argv: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([...argv], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
    timeout: INSTALL_TIMEOUT_MS,
  })
  return (await child.exited) === 0
}
