import { closeSync, openSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { SandboxLimits } from '@sandwire/internal-api'
import type { EgressLaunch } from '../egress/egress-process.ts'
import { type Binding, INSIDE_PROGRAMS } from './bwrap-argv.ts'
import type { Cgroup } from './cgroups.ts'
import { bundleEgress } from './daemon-bundle.ts'
import { INSIDE, type IsolationSettings } from './isolation.ts'
import { createLaunchArgv } from './launch-script.ts'
import { formatMountTable, type Mount } from './mount-table.ts'
import { INSIDE_DAEMON } from './programs.ts'
import { cacheFolderOf, ensureFolder, type SandboxFolders, type SandboxIds } from './sandbox-folders.ts'
import { createFilterBytes } from './seccomp/filter.ts'
import { ownSystemFolders, usrLinks } from './system-files.ts'
import { SYSTEM_ENV } from './system-tools.ts'

const FILTER_FD = 3
/** Rarely more than 256 connections, each with a target. */
const MAX_OPEN_FILES = 2048

/** Limits of the proxy itself; it is replaced when it exceeds its memory. `diskBytes` is not used: it can write nothing. */
const LIMITS: SandboxLimits = {
  memoryBytes: 192 * 1024 ** 2,
  pids: 64,
  milliCpus: 1000,
  diskBytes: 0,
}

/** Code of the proxy and its executable, where the user of the proxy can bind them from. */
function findSources(
  folders: SandboxFolders,
  ids: SandboxIds | undefined,
  { executable, code }: { executable: string; code: string },
): { readonly mounts: readonly Mount[]; readonly bindings: readonly Binding[] } {
  const file = realpathSync(executable)
  const inside = { executable: INSIDE_DAEMON.executable, code: `${INSIDE_PROGRAMS}/egress` }
  if (ids === undefined)
    return {
      mounts: [],
      bindings: [
        { from: file, to: inside.executable },
        { from: code, to: inside.code },
      ],
    }
  const at = (name: string): string => path.join(folders.run, 'egress-stage', name)
  for (const name of ['', 'runtime', 'code']) ensureFolder(at(name), 0o755)
  return {
    mounts: [
      { kind: 'bind', from: path.dirname(file), to: at('runtime') },
      { kind: 'bind', from: code, to: at('code') },
    ],
    bindings: [
      { from: path.join(at('runtime'), path.basename(file)), to: inside.executable },
      { from: at('code'), to: inside.code },
    ],
  }
}

/** Folder with the target of `/etc/resolv.conf`, if it is elsewhere. */
function findResolverFolder(): string[] {
  try {
    const folder = path.dirname(realpathSync('/etc/resolv.conf'))
    return folder === '/etc' || folder.startsWith('/usr') ? [] : [folder]
  } catch {
    // Not configured.
    return []
  }
}

/** The machine's network, name resolution and programs, read-only; the folder of its socket; nothing else. */
function createEgressArgv(folder: string, bindings: readonly Binding[]): string[] {
  const readOnly = ['/usr', ...ownSystemFolders().map(({ from }) => from), '/etc', ...findResolverFolder()]
  return [
    ...'--unshare-user --disable-userns --uid 1000 --gid 1000 --cap-drop ALL'.split(' '),
    ...'--unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --die-with-parent --new-session'.split(
      ' ',
    ),
    '--seccomp',
    String(FILTER_FD),
    '--clearenv',
    ...readOnly.flatMap((each) => ['--ro-bind', each, each]),
    ...usrLinks().flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...'--proc /proc --dev /dev'.split(' '),
    ...bindings.flatMap(({ from, to }) => ['--ro-bind', from, to]),
    '--bind',
    folder,
    path.dirname(INSIDE.proxySocket),
    ...'--remount-ro /dev --remount-ro / --chdir / --'.split(' '),
    INSIDE_DAEMON.executable,
    '--smol',
    `${INSIDE_PROGRAMS}/egress/main.js`,
  ]
}

/**
 * Starts the egress proxy of a prepared sandbox, in a sandbox of its own with the machine's network: it parses bytes of
 * untrusted programs. It dies with the calling process.
 */
export async function launchEgress(
  folders: SandboxFolders,
  ids: SandboxIds | undefined,
  settings: IsolationSettings,
  cgroup: Cgroup,
): Promise<EgressLaunch> {
  cgroup.create(LIMITS)
  const cacheFolder = cacheFolderOf(settings)
  const code = settings.egressCode ?? (await bundleEgress(cacheFolder))
  const { mounts, bindings } = findSources(folders, ids, { executable: settings.program.executable, code })
  const table = path.join(folders.run, 'egress-mounts')
  writeFileSync(table, formatMountTable(mounts), { mode: 0o600 })
  const filter = path.join(folders.run, 'egress-filter.bpf')
  writeFileSync(filter, createFilterBytes(process.arch === 'arm64' ? 'arm64' : 'x64'))
  const steps = {
    joinFiles: cgroup.joinFiles,
    mounting: mounts.length === 0 ? undefined : { mounts, table, folder: '/' },
    hostId: ids?.egress,
    rlimits: ['--core=0:0', `--nofile=${MAX_OPEN_FILES}:${MAX_OPEN_FILES}`],
  }
  const argv = createLaunchArgv(steps, process.pid, ['bwrap', ...createEgressArgv(folders.egress, bindings)])
  const fd = openSync(filter, 'r')
  try {
    const child = Bun.spawn(argv, { cwd: '/', env: SYSTEM_ENV, stdio: ['pipe', 'pipe', 'ignore', fd] })
    return { child, socketPath: INSIDE.proxySocket }
  } finally {
    closeSync(fd)
  }
}
