import type { StopReason } from '@sandwire/protocol'
import { DataLock } from '../data/lock.ts'
import { identifyProcess } from '../data/process-identity.ts'
import type { Isolation } from '../isolation/isolation.ts'
import { LogFile } from '../log.ts'
import { announce } from './announce.ts'
import { filesIn } from './sandbox-files.ts'
import { type IsolationChoice, MAX_LOG_BYTES, readSpec } from './spec.ts'
import { supervise } from './supervise.ts'
import { SupervisorLog } from './supervisor-log.ts'

/** Resolves at SIGTERM or SIGINT. SIGHUP of a closing terminal is ignored. */
function awaitSignal(): Promise<StopReason> {
  process.on('SIGHUP', () => undefined)
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve('requested'))
  })
}

/** Writes to a rotated log. On a full disk only log lines are lost. */
function createWriter(file: string): (lines: string) => void {
  const logFile = new LogFile(file, MAX_LOG_BYTES)
  return (lines) => {
    try {
      logFile.write(lines)
    } catch {
      // There is nowhere else to report it.
    }
  }
}

/** The program: runs the sandbox of a spec file until it ends. */
export async function runSupervisor(
  specFile: string,
  createIsolation: (choice: IsolationChoice) => Isolation,
): Promise<void> {
  const stopRequested = awaitSignal()
  const spec = readSpec(specFile)
  const self = identifyProcess(process.pid)
  if (spec === undefined || self === undefined) {
    announce({ type: 'failed', reason: 'bad_spec' })
    return
  }
  const files = filesIn(spec.folder)
  const outcome = DataLock.take(files.lock)
  if (outcome.kind === 'held') {
    announce({ type: 'held' })
    return
  }
  const log = new SupervisorLog(createWriter(files.log), () => new Date())
  let isAnnounced = false
  const reason = await supervise(spec, {
    isolation: createIsolation(spec.isolation),
    files,
    log,
    self,
    epoch: crypto.randomUUID(),
    nowMs: Date.now,
    stopRequested,
    onRunning: () => {
      isAnnounced = true
      announce({ type: 'running' })
    },
  })
  if (!isAnnounced) announce({ type: 'failed', reason })
  outcome.lock.release()
}
