import { shellQuote } from '@sandwire/shell-quote'
/** Steps between the supervisor and bubblewrap, done by one shell that becomes bubblewrap. */
export interface LaunchSteps {
  /** Files to write the own pid into, to be in the sandbox's group before anything of it runs. */
  readonly joinFiles: readonly string[]
  /** With root: host ids to become, and what to mount where only this sandbox sees it. */
  readonly root: RootSteps | undefined
  readonly rlimits: readonly string[]
  /** How readily the kernel ends what is launched; absent: as this process. */
  readonly oomScore?: number | undefined
}

export interface RootSteps {
  readonly hostId: number
  readonly mounts: readonly Mount[]
}

/** A mount that ends with the sandbox, however that ends. */
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
        // Freed blocks become holes in the image again.
        `mount -t ext4 -o loop,discard,nosuid,nodev,noatime ${shellQuote(mount.from)} ${shellQuote(mount.to)}`,
        // The user may have closed them to sandboxd. Their parent is root's, so they are what they are called.
        `chmod 755 ${shellQuote(`${mount.to}/workspace`)} ${shellQuote(`${mount.to}/home`)}`,
      ]
    case 'terminals':
      return [
        `mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=${mount.max} devpts ${shellQuote(mount.to)}`,
      ]
  }
}

/** The shell's text. Its arguments are bubblewrap's name and arguments; `$0` is the pid of the supervisor. */
export function createLaunchScript(steps: LaunchSteps): string {
  const become =
    steps.root === undefined
      ? []
      : ['setpriv', '--pdeathsig', 'KILL', ...idArguments(steps.root.hostId), '--clear-groups', '--']
  return [
    'set -e',
    // The parent died before it could be told to take this process along.
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

/** The whole command: dies with its parent from its first instruction, and with root has mounts of its own. */
export function createLaunchArgv(steps: LaunchSteps, parentPid: number, bwrap: readonly string[]): string[] {
  const apart = steps.root === undefined ? [] : ['unshare', '--mount', '--propagation', 'private', '--']
  const shell = ['sh', '-c', createLaunchScript(steps), String(parentPid)]
  return ['setpriv', '--pdeathsig', 'KILL', '--', ...apart, ...shell, ...bwrap]
}
