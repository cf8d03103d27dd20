/** The container engine on PATH that responds; undefined when none does. */
export function findEngine(): string | undefined {
  return ['docker', 'podman']
    .map((name) => Bun.which(name))
    .filter((file) => file !== null)
    .find((file) => Bun.spawnSync([file, 'info'], { stdout: 'ignore', stderr: 'ignore' }).success)
}

/** Runs a build step. Prints its output and throws when it fails. */
export function run(title: string, argv: readonly string[]): string {
  console.error(`${title} …`)
  // Old engines have no BuildKit, and the file needs none.
  const env = { ...process.env, DOCKER_BUILDKIT: process.env['DOCKER_BUILDKIT'] ?? '0' }
  const child = Bun.spawnSync([...argv], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  if (child.success) return child.stdout.toString()
  console.error(child.stdout.toString() + child.stderr.toString())
  throw new Error(`${title}: ${argv[0]} exited with ${child.exitCode}`)
}
