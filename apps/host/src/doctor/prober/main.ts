// Replaces sandboxd in a temporary sandbox, and tries to break out as a user's process would.
// Prints one JSON line for each attempt.

import { FFIType } from 'bun:ffi'
import { limitsSchema } from '@sandwire/internal-api'
import { schema } from '@sandwire/protocol'
import { openLibc } from '../../libc.ts'
import { probeTargetsSchema, type ProbeReport } from '../probe-protocol.ts'
import { probeFiles } from './file-probes.ts'
import { probeKernel, probeTools } from './kernel-probes.ts'
import { probeDisk, probeLimits, takeMemory, takeQueues } from './limit-probes.ts'
import { probeNeighbors } from './neighbor-probes.ts'
import { probeWatching } from './watch-probes.ts'

const PR_SET_DUMPABLE = 4
const SELF = [process.execPath, import.meta.path]

function print(reports: readonly ProbeReport[]): void {
  for (const each of reports) process.stdout.write(`${JSON.stringify(each)}\n`)
}

const taskSchema = schema.record({
  targets: probeTargetsSchema,
  limits: limitsSchema,
  workspace: schema.text(400),
})

function decodeTask(text: string): schema.Decoded<typeof taskSchema> {
  const task = taskSchema.decode(JSON.parse(text))
  if (task === undefined) throw new Error('The prober got an invalid task')
  return task
}

/** Starts processes as sandboxd does: as the user if there is one, without capabilities. */
function launcher(runAs: string | undefined): string[] {
  if (runAs === undefined) return []
  const [uid, gid] = runAs.split(':')
  const nothing = ['--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all', '--no-new-privs', '--']
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...nothing]
}

/** Acts as sandboxd: becomes non-dumpable, listens, and runs the attempts in sequence. */
async function serve(task: string, runAs: string | undefined): Promise<void> {
  const libc = openLibc({
    prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  })
  libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
  const { targets, workspace } = decodeTask(task)
  process.umask(0o177)
  using _server = Bun.serve({ unix: targets.daemonSocket, fetch: () => new Response() })
  process.umask(0o022)
  for (const part of ['tools', 'kernel', 'files', 'neighbors', 'watching', 'limits', 'disk']) {
    const argv = [...launcher(runAs), ...SELF, part, task]
    const child = Bun.spawn(argv, { cwd: workspace, stdio: ['ignore', 'inherit', 'inherit'] })
    await child.exited
  }
}

async function attempt(part: string, text: string): Promise<void> {
  const { targets, limits, workspace } = decodeTask(text)
  switch (part) {
    case 'tools':
      return print(probeTools())
    case 'kernel':
      return print(probeKernel())
    case 'files':
      return print(probeFiles(targets))
    case 'neighbors':
      return print(await probeNeighbors(targets))
    case 'watching':
      return print(await probeWatching(targets))
    case 'limits':
      return print(await probeLimits(limits, SELF))
    case 'disk':
      return print(await probeDisk(workspace, limits))
    default:
      throw new Error(`Unknown part "${part}"`)
  }
}

const [mode = '', value = '', runAsFlag, runAs] = process.argv.slice(2)
if (mode === 'serve') await serve(value, runAsFlag === '--run-as' ? runAs : undefined)
else if (mode === 'allocate') await takeMemory(Number(value), runAsFlag)
else if (mode === 'queues') await takeQueues(Number(value))
else await attempt(mode, value)
process.exit(0)
