import { canRun, findTool } from '../isolation/system-tools.ts'

/** Capabilities of a supervisor that root starts, and what isolation needs them for. */
const CAPABILITIES = [
  // Folders, sockets and disks that belong to the sandbox's users.
  'chown',
  'dac_override',
  'fowner',
  // Ends the sandbox's processes.
  'kill',
  // Runs bubblewrap and sandboxd as the sandbox's users, without capabilities.
  'setgid',
  'setuid',
  'setpcap',
  // Mounts, and opens the user namespace that it creates for bubblewrap.
  'sys_admin',
  'sys_ptrace',
  // Device nodes.
  'mknod',
  // Makes the OOM score a minimum for the sandbox's processes.
  'sys_resource',
] as const

/** Numbers of those capabilities, from `linux/capability.h`. */
const NUMBERS: Readonly<Record<(typeof CAPABILITIES)[number], bigint>> = {
  chown: 0n,
  dac_override: 1n,
  fowner: 3n,
  kill: 5n,
  setgid: 6n,
  setuid: 7n,
  setpcap: 8n,
  sys_admin: 21n,
  sys_ptrace: 19n,
  mknod: 27n,
  sys_resource: 24n,
}

/** Capabilities that supervisors would use and the current process does not have. `status` is `/proc/self/status`. */
export function findMissingCapabilities(status: string): string[] {
  const held = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  return CAPABILITIES.filter((name) => (held & (1n << NUMBERS[name])) === 0n).map(
    (name) => `CAP_${name.toUpperCase()}`,
  )
}

/** The kernel requires it of who creates a user namespace that contains root. */
const MAP_ROOT = 'setfcap'

/**
 * Command prefix of a supervisor: root keeps only these capabilities, and its programs gain none. Empty where that does not work.
 * `mapsRoot`: processes of sandboxes run as root, in a user namespace, and not as users of their own.
 */
export function limitSupervisor(isRoot: boolean, mapsRoot: boolean): string[] {
  const setpriv = isRoot ? findTool('setpriv') : null
  if (setpriv === null) return []
  const capabilities = [...CAPABILITIES, ...(mapsRoot ? [MAP_ROOT] : [])]
  const kept = capabilities.map((name) => `+${name}`).join(',')
  const prefix = [setpriv, '--no-new-privs', '--inh-caps=-all', `--bounding-set=-all,${kept}`, '--']
  return canRun(prefix) ? prefix : []
}
