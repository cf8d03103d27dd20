import { report, type ProbeReport } from '../probe-report.ts'

/** Attempts with the system's own tools, as somebody at a prompt would make them. */
const ATTEMPTS: readonly {
  readonly name: string
  readonly argv: readonly string[]
  readonly what: string
}[] = [
  {
    name: 'user-namespace',
    argv: ['unshare', '--user', '--map-root-user', 'true'],
    what: 'make a user namespace',
  },
  {
    name: 'enter-namespace',
    argv: ['nsenter', '--uts=/proc/self/ns/uts', 'true'],
    what: 'enter a namespace',
  },
]

/** Runs them; success is the failure. */
export function probeTools(): ProbeReport[] {
  return ATTEMPTS.map(({ name, argv, what }) => {
    const got = Bun.spawnSync([...argv], { stdio: ['ignore', 'ignore', 'ignore'] }).success
    return got ? report(name, 'failed', `could ${what}`) : report(name, 'ok', `cannot ${what}`)
  })
}
