/** Uid of `nobody`, as which root runs unprivileged tests. */
export const NOBODY = 65_534

/** Prefix of a command that root runs as `nobody`. */
export const AS_NOBODY: readonly string[] = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
]

const isRoot = process.getuid?.() === 0

/** Why `nobody` cannot run this checkout; undefined when it can. */
export const nobodyProblem = isRoot ? findProblem() : undefined

if (nobodyProblem !== undefined) console.error(`No tests as an unprivileged user: ${nobodyProblem}`)

/** True when tests run as root and can also run as `nobody`. */
export const canBecomeNobody = isRoot && nobodyProblem === undefined

function findProblem(): string | undefined {
  // Reads a file, because setpriv executes programs with root's permissions.
  const child = Bun.spawnSync([...AS_NOBODY, 'cat', import.meta.path], { stdout: 'ignore', stderr: 'ignore' })
  return child.success ? undefined : 'it cannot read this folder (chmod a+rx it and its parents)'
}
