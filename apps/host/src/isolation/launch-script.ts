import { shellQuote } from '@sandwire/shell-quote'
/** Steps of the shell script that ends in `exec bwrap`. */
export interface LaunchSteps {
  /** cgroup files to write the pid to, before anything of the sandbox runs. */
  readonly joinFiles: readonly string[]
  /** With root: the uid to switch to, and mounts for the sandbox's mount namespace. */
  readonly root: RootSteps | undefined
  readonly rlimits: readonly string[]
  /** OOM score adjustment; absent: inherited. */
  readonly oomScore?: number | undefined
}

export interface RootSteps {
  readonly hostId: number
  readonly mounts: readonly Mount[]
}

/** A mount in the sandbox's mount namespace; unmounted with it. */
export type Mount =
  | { readonly kind: 'bind'; readonly from: string; readonly to: string }
  | { readonly kind: 'image'; readonly from: string; readonly to: string }
  | { readonly kind: 'terminals'; readonly to: string; readonly max: number }

function mountCommands(mount: Mount): string[] {
  switch (mount.kind) {
    case 'bind':
      return [`mount --bind ${shellQuote(mount.from)} ${shellQuote(mount.to)}`]
    case 'image':
      return [
        // `discard` makes freed blocks sparse again.
        `mount -t ext4 -o loop,discard,nosuid,nodev,noatime ${shellQuote(mount.from)} ${shellQuote(mount.to)}`,
        // The user may have changed their modes. Their parent belongs to root, so they are no symbolic links.
        `chmod 755 ${shellQuote(`${mount.to}/workspace`)} ${shellQuote(`${mount.to}/home`)}`,
      ]
    case 'terminals':
      return [
        `mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=${mount.max} devpts ${shellQuote(mount.to)}`,
      ]
  }
}

/** The shell script. `$@` is bubblewrap's command; `$0` is the pid of the supervisor. */
export function createLaunchScript(steps: LaunchSteps): string {
  const become =
    steps.root === undefined
      ? []
      : ['setpriv', '--pdeathsig', 'KILL', ...idArguments(steps.root.hostId), '--clear-groups', '--']
  return [
    'set -e',
    // Exits if the parent died before `pdeathsig` was set.
    '[ "$PPID" = "$0" ]',
    ...steps.joinFiles.map((file) => `echo $$ > ${shellQuote(file)}`),
    ...(steps.oomScore === undefined
      ? []
      : [`echo ${steps.oomScore} 2>/dev/null > /proc/self/oom_score_adj || :`]),
    ...(steps.root?.mounts ?? []).flatMap(mountCommands),
    ['exec', 'prlimit', ...steps.rlimits, ...become, '"$@"'].join(' '),
  ].join('\n')
}

function idArguments(id: number): string[] {
  return ['--reuid', String(id), '--regid', String(id)]
}

/** The whole command: dies with its parent and, with root, has its own mount namespace. */
export function createLaunchArgv(steps: LaunchSteps, parentPid: number, bwrap: readonly string[]): string[] {
  const apart = steps.root === undefined ? [] : ['unshare', '--mount', '--propagation', 'private', '--']
  const shell = ['sh', '-c', createLaunchScript(steps), String(parentPid)]
  return ['setpriv', '--pdeathsig', 'KILL', '--', ...apart, ...shell, ...bwrap]
}
