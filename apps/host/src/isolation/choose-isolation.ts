import { createBubblewrap } from './bubblewrap.ts'
import type { Isolation, IsolationSettings } from './isolation.ts'
import { runTool, SYSTEM_ENV } from './system-tools.ts'
import { canLaunchUnisolated, createUnisolated } from './unisolated.ts'

/** The chosen isolation, and one line for the user when it is weaker than bubblewrap's. */
export interface Choice {
  readonly isolation: Isolation
  readonly notice?: string
}

/** Facts about this machine that decide. */
export interface Findings {
  /** `SANDWIRE_ISOLATION`. */
  readonly requested: string | undefined
  /** Why bubblewrap does not work; undefined when it does. */
  readonly problem: string | undefined
  /** True when sandboxes can start without bubblewrap. */
  readonly canLaunch: boolean
}

/** Decides; pure. */
export function decide({ requested, problem, canLaunch }: Findings): {
  kind: Isolation['kind']
  notice?: string
} {
  const why = requested === 'none' ? 'SANDWIRE_ISOLATION=none' : problem
  if (why === undefined) return { kind: 'bubblewrap' }
  const missing = canLaunch ? '' : ', and cannot start: setpriv (util-linux) is not installed'
  return { kind: 'none', notice: `Sandboxes are not isolated from this machine: ${why}${missing}` }
}

/** True when bubblewrap is installed. */
export function hasBubblewrap(): boolean {
  return Bun.which('bwrap', { PATH: SYSTEM_ENV['PATH'] ?? '' }) !== null
}

/** Trial run with the namespaces and mounts of a sandbox. */
const TRIAL = [
  'bwrap',
  '--unshare-user',
  '--unshare-pid',
  '--unshare-net',
  '--ro-bind',
  '/usr',
  '/usr',
  '--symlink',
  'usr/bin',
  '/bin',
  '--symlink',
  'usr/lib',
  '/lib',
  '--symlink',
  'usr/lib64',
  '/lib64',
  '--proc',
  '/proc',
  '--dev',
  '/dev',
  '--',
  '/usr/bin/true',
]
/** Before it as root: a mount namespace, and another user. */
const ROOT_TRIAL = [
  'unshare',
  '--mount',
  '--propagation',
  'private',
  '--',
  'setpriv',
  '--reuid',
  '65534',
  '--regid',
  '65534',
  '--clear-groups',
  '--',
]

/** Why bubblewrap does not work on this machine; undefined when it does. Checked by running it. */
export async function findBubblewrapProblem(isRoot = process.getuid?.() === 0): Promise<string | undefined> {
  if (!hasBubblewrap()) return 'bubblewrap is not installed'
  try {
    await runTool([...(isRoot ? ROOT_TRIAL : []), ...TRIAL])
    return undefined
  } catch {
    return 'the kernel does not allow this user to create namespaces'
  }
}

/** Creates the isolation that was chosen before, for example by the host for its supervisors. */
export function createIsolation(kind: Isolation['kind'], settings: IsolationSettings): Isolation {
  return kind === 'bubblewrap' ? createBubblewrap(settings) : createUnisolated(settings)
}

/** Chooses the strongest isolation that works. `SANDWIRE_ISOLATION=none` in `env` turns it off. */
export async function chooseIsolation(
  settings: IsolationSettings,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Choice> {
  const requested = env['SANDWIRE_ISOLATION']
  const problem = requested === 'none' ? undefined : await findBubblewrapProblem()
  const { kind, notice } = decide({ requested, problem, canLaunch: canLaunchUnisolated() })
  const isolation = createIsolation(kind, settings)
  return notice === undefined ? { isolation } : { isolation, notice }
}
