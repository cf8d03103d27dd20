/** Debian packages of the peers and of bubblewrap, with the program that each contains. */
const PACKAGES: readonly { readonly name: string; readonly program: string }[] = [
  { name: 'openssh-server', program: '/usr/sbin/sshd' },
  { name: 'openssh-client', program: 'ssh' },
  { name: 'websocketd', program: 'websocketd' },
  { name: 'restic', program: 'restic' },
  { name: 'zstd', program: 'zstd' },
  { name: 'bubblewrap', program: 'bwrap' },
]

function run(argv: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return Bun.spawnSync([...argv], { env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).success
}

/** Installs missing peers, as root on Debian. Never fails: an absent peer is left out of the table. */
export function installPeers(say: (line: string) => void): void {
  const missing = PACKAGES.filter(({ program }) => Bun.which(program) === null).map(({ name }) => name)
  if (missing.length === 0 || process.getuid?.() !== 0 || Bun.which('apt-get') === null) return
  say(`Installing ${missing.join(', ')} …`)
  const install = ['apt-get', 'install', '--yes', '--quiet', '--no-install-recommends', ...missing]
  if (!run(install) && !(run(['apt-get', 'update', '--quiet']) && run(install))) {
    say(`Cannot install ${missing.join(', ')}: apt-get failed`)
  }
}
