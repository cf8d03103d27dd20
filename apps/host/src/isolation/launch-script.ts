import { shellQuote } from '@sandwire/shell-quote'
import { completeMounts, type Mount } from './mount-table.ts'

/** Mounts in the sandbox's mount namespace. */
export interface MountSteps {
  readonly mounts: readonly Mount[]
  /** File with the mounts in the format of fstab(5). */
  readonly table: string
  /** Relative paths of layers start here. The kernel shows layers as they were given, in the sandbox too. */
  readonly folder: string
}

/** Steps of the shell script that ends in `exec bwrap`. */
export interface LaunchSteps {
  /** cgroup files to write the pid to, before anything of the sandbox runs. */
  readonly joinFiles: readonly string[]
  /** Absent: in the mount namespace of the machine. */
  readonly mounting: MountSteps | undefined
  /** With root: the host id to switch to. */
  readonly hostId: number | undefined
  readonly rlimits: readonly string[]
  /** OOM score adjustment; absent: inherited. */
  readonly oomScore?: number | undefined
}

/** The shell script. `$@` is bubblewrap's command; `$0` is the pid of the supervisor. */
export function createLaunchScript(steps: LaunchSteps): string {
  const become =
    steps.hostId === undefined
      ? []
      : ['setpriv', '--pdeathsig', 'KILL', ...idArguments(steps.hostId), '--clear-groups', '--']
  return [
    'set -e',
    // Exits if the parent died before `pdeathsig` was set.
    '[ "$PPID" = "$0" ]',
    ...steps.joinFiles.map((file) => `echo $$ > ${shellQuote(file)}`),
    ...(steps.oomScore === undefined
      ? []
      : [`echo ${steps.oomScore} 2>/dev/null > /proc/self/oom_score_adj || :`]),
    ...(steps.mounting === undefined ? [] : mountCommands(steps.mounting)),
    ['exec', 'prlimit', ...steps.rlimits, ...become, '"$@"'].join(' '),
  ].join('\n')
}

function mountCommands({ mounts, table, folder }: MountSteps): string[] {
  return [`cd ${shellQuote(folder)}`, `mount -a -T ${shellQuote(table)}`, 'cd /', ...completeMounts(mounts)]
}

function idArguments(id: number): string[] {
  return ['--reuid', String(id), '--regid', String(id)]
}

/** Prefix of a command that mounts: in a mount namespace and, without root, in a user namespace whose root is this user. */
export function createMountPrefix(isRoot: boolean): string[] {
  const users = isRoot ? [] : ['--user', '--map-root-user']
  return ['unshare', ...users, '--mount', '--propagation', 'private', '--']
}

/** The whole command: dies with its parent and, with mounts, has its own mount namespace. */
export function createLaunchArgv(steps: LaunchSteps, parentPid: number, bwrap: readonly string[]): string[] {
  const apart = steps.mounting === undefined ? [] : createMountPrefix(steps.hostId !== undefined)
  const shell = ['sh', '-c', createLaunchScript(steps), String(parentPid)]
  return ['setpriv', '--pdeathsig', 'KILL', '--', ...apart, ...shell, ...bwrap]
}
