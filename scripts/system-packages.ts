/** A program that tests use and npm cannot install. */
type SystemPackage = {
  /** Name of the Debian package. */
  readonly name: string
  /** A command that succeeds when the package is installed. */
  readonly probe: readonly string[]
  /** The tests that do not run without it. */
  readonly tests: string
}

/** The interpreter that sees Debian's Python packages, whatever else is first in PATH. */
const systemPython = '/usr/bin/python3'

const systemPackages: readonly SystemPackage[] = [
  {
    name: 'python3-websockets',
    probe: [systemPython, '-c', 'import websockets'],
    tests: 'a foreign WebSocket client',
  },
  { name: 'git', probe: ['git', '--version'], tests: 'git in the workspace' },
  { name: 'curl', probe: ['curl', '--version'], tests: 'the egress proxy with a foreign client' },
  { name: 'openssl', probe: ['openssl', 'version'], tests: 'TLS' },
  { name: 'strace', probe: ['strace', '--version'], tests: 'tracing as another user' },
  { name: 'util-linux', probe: ['script', '--version'], tests: 'the command line in a terminal' },
  {
    name: 'chromium-headless-shell',
    probe: ['/usr/lib/chromium/chromium-headless-shell', '--version'],
    tests: 'the client library and the workbench in a browser',
  },
  { name: 'bubblewrap', probe: ['bwrap', '--version'], tests: 'isolated sandboxes' },
  { name: 'vim', probe: ['vim', '--version'], tests: 'full-screen programs in a terminal' },
  { name: 'less', probe: ['less', '--version'], tests: 'full-screen programs in a terminal' },
  { name: 'tmux', probe: ['tmux', '-V'], tests: 'panes of tmux' },
  { name: 'procps', probe: ['ps', '--version'], tests: 'process clean-up' },
  { name: 'docker.io', probe: ['dockerd', '--version'], tests: 'sandboxes in containers' },
  { name: 'iptables', probe: ['iptables', '--version'], tests: 'the network of containers' },
  { name: 'iproute2', probe: ['ip', '-V'], tests: 'sandboxes in containers' },
  { name: 'debootstrap', probe: ['debootstrap', '--version'], tests: 'the image of a sandbox' },
]

/** What to do about missing packages. */
export type Plan =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'install'; readonly names: readonly string[] }
  | { readonly kind: 'skip'; readonly reason: string }

export function planInstall(missing: readonly string[], system: { isRoot: boolean; hasApt: boolean }): Plan {
  if (missing.length === 0) return { kind: 'nothing' }
  if (!system.hasApt) return { kind: 'skip', reason: 'apt-get is not available' }
  if (!system.isRoot) return { kind: 'skip', reason: 'installing needs root' }
  return { kind: 'install', names: missing }
}

/**
 * Installs the missing ones of `names` (all unless given) where that is possible; otherwise says which tests will be skipped.
 * Never fails.
 */
export function ensureSystemPackages(say: (line: string) => void, names?: readonly string[]): void {
  const wanted = systemPackages.filter(({ name }) => names?.includes(name) ?? true)
  const missing = wanted.filter((each) => !succeeds(each.probe))
  const plan = planInstall(
    missing.map((each) => each.name),
    { isRoot: process.getuid?.() === 0, hasApt: Bun.which('apt-get') !== null },
  )
  switch (plan.kind) {
    case 'nothing':
      return
    case 'skip':
      say(describeSkipped(missing, plan.reason))
      return
    case 'install':
      say(`Installing system packages: ${plan.names.join(', ')} …`)
      if (!install(plan.names)) say(describeSkipped(missing, 'apt-get failed'))
  }
}

function describeSkipped(missing: readonly SystemPackage[], reason: string): string {
  const list = missing.map((each) => `${each.tests} (needs ${each.name})`).join(', ')
  return `Tests that will be skipped, because ${reason}: ${list}`
}

function install(names: readonly string[]): boolean {
  const argv = ['apt-get', 'install', '--yes', '--quiet', '--no-install-recommends', ...names]
  // The package lists are usually recent enough; updating them takes seconds.
  return succeeds(argv) || (succeeds(['apt-get', 'update', '--quiet']) && succeeds(argv))
}

function succeeds(argv: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  try {
    return Bun.spawnSync([...argv], { env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).success
  } catch {
    // The program does not exist.
    return false
  }
}
