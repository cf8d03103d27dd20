/** The unprivileged user that root becomes in tests. */
export const NOBODY = 65_534

/** Start of a command that runs as nobody; only root can. */
export const AS_NOBODY: readonly string[] = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
]

const isRoot = process.getuid?.() === 0

/** Why an unprivileged user cannot run this checkout; undefined when it can. */
export const nobodyProblem = isRoot ? findProblem() : undefined

if (nobodyProblem !== undefined) console.error(`No tests as an unprivileged user: ${nobodyProblem}`)

/** Whether tests can act both as the root that they are and as nobody. */
export const canBecomeNobody = isRoot && nobodyProblem === undefined

function findProblem(): string | undefined {
  // Read, not executed: setpriv still has root's rights when it executes something.
  const child = Bun.spawnSync([...AS_NOBODY, 'cat', import.meta.path], { stdout: 'ignore', stderr: 'ignore' })
  return child.success ? undefined : 'they cannot read this folder (chmod a+rx it and those above it)'
}
