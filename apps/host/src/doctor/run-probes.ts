import path from 'node:path'
import { ID_ALPHABET, type SandboxLimits } from '@sandwire/internal-api'
import { createIsolation } from '../isolation/choose-isolation.ts'
import { bundleProgram } from '../isolation/daemon-bundle.ts'
import { INSIDE, type Isolation, type IsolationSettings } from '../isolation/isolation.ts'
import { parseReport, type ProbeReport, report } from './probe-protocol.ts'
import { openProbeTargets } from './probe-targets.ts'

const MEBIBYTE = 1024 ** 2

/** Small, so that the probes reach them quickly. */
const LIMITS: SandboxLimits = {
  memoryBytes: 256 * MEBIBYTE,
  pids: 64,
  milliCpus: 500,
  diskBytes: 32 * MEBIBYTE,
}

/** Every probe, so that a missing report is noticed. */
export const PROBES: readonly string[] = [
  'user-namespace',
  'enter-namespace',
  'clone-user-namespace',
  'mount',
  'fsopen',
  'process-vm-read',
  'bpf',
  'io-uring',
  'asynchronous-io',
  'keyctl',
  'userfaultfd',
  'perf-event',
  'name-to-handle',
  'type-into-terminal',
  'console-selection',
  'vsock',
  'ptrace',
  'write-outside',
  'kernel-switches',
  'device-node',
  'setuid',
  'capabilities',
  'descriptors',
  'process-roots',
  'foreign-files',
  'temporary-bytes',
  'temporary-files',
  'abstract-sockets',
  'host-network',
  'foreign-processes',
  'environment',
  'daemon-memory',
  'daemon-reach',
  'daemon-limits',
  'init-memory',
  'watch-files',
  'watch-devices',
  'file-locks',
  'mount-table',
  'machine-devices',
  'process-limit',
  'terminal-limit',
  'descriptor-limit',
  'processor-limit',
  'memory-limit',
  'socket-queues',
  'file-limit',
  'disk-limit',
]

function mintId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return Array.from(bytes, (byte) => ID_ALPHABET[byte & 31]).join('')
}

/** Adds reports for probes that did not finish. */
export function complete(reports: readonly ProbeReport[], ended: string): ProbeReport[] {
  const byName = new Map(reports.map((each) => [each.name, each]))
  return PROBES.map((name) => byName.get(name) ?? missing(name, ended))
}

function missing(name: string, ended: string): ProbeReport {
  const isDisk = name === 'disk-limit' || name === 'file-limit'
  return isDisk && ended === 'disk_full'
    ? report(name, 'weak', 'the sandbox is stopped when it exceeds its disk, with a delay')
    : report(name, 'failed', `the probe did not finish (the sandbox ended with ${ended})`)
}

async function readReports(stdout: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<ProbeReport[]> {
  const text = await new Response(stdout).text()
  return text
    .split('\n')
    .map(parseReport)
    .filter((each) => each !== undefined)
}

/** Tries to break out of a temporary sandbox of this kind; one report for each probe. Takes some seconds. */
export async function runProbes(
  kind: Isolation['kind'],
  settings: IsolationSettings,
): Promise<readonly ProbeReport[]> {
  const source = path.dirname(new URL('prober/main.ts', import.meta.url).pathname)
  const cache = path.join(settings.dataFolder, 'cache')
  const folder = await bundleProgram({ name: 'prober', root: source, entries: ['main.ts'] }, cache)
  const program = { executable: settings.program.executable, code: { folder, entry: 'main.js' } }
  // The disk probe fills the workspace, so a folder of the user is never used.
  const { workspace: _served, ...own } = settings
  const isolation = createIsolation(kind, { ...own, program })
  const id = mintId()
  await using opened = await openProbeTargets(settings.dataFolder, id)
  try {
    const outside = await isolation.prepare({ id, limits: LIMITS })
    const targets = {
      ...opened.targets,
      daemonSocket: kind === 'none' ? outside.daemonSocket : INSIDE.daemonSocket,
    }
    const workspace = kind === 'none' ? outside.workspace : INSIDE.workspace
    const task = JSON.stringify({ targets, limits: LIMITS, workspace })
    const launched = await isolation.launch({
      id,
      name: 'doctor',
      limits: LIMITS,
      daemonArgs: ['serve', task],
      publicKey: '',
      hasEgress: false,
    })
    // Both streams are read, so that the prober never blocks on writing.
    const [reports] = await Promise.all([readReports(launched.stdout), new Response(launched.stderr).text()])
    return complete(reports, await launched.ended)
  } finally {
    await isolation.remove(id)
  }
}
