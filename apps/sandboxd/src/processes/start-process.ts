import { startPipeProcess } from './pipe-process.ts'
import type { StartProcess } from './process.ts'
import { startPtyProcess } from './pty-process.ts'
import { isFailure, resolveCommand } from './resolve-command.ts'
import { DRAIN_BYTES, DRAIN_MS, HANGUP_MS, type StartOptions, TERMINATE_MS } from './start-options.ts'

/** Where `setsid` is when the environment names no PATH. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/local/bin'

/** Starts real processes on this machine. */
export function createStartProcess(options: Partial<StartOptions> = {}): StartProcess {
  const settings = {
    drainMs: DRAIN_MS,
    drainBytes: DRAIN_BYTES,
    hangupMs: HANGUP_MS,
    terminateMs: TERMINATE_MS,
    now: () => performance.now(),
    ...options,
    setsidFile: Bun.which('setsid') ?? Bun.which('setsid', { PATH: SYSTEM_PATH }),
  }
  return (spec, events) => {
    const command = resolveCommand(spec)
    if (isFailure(command)) return command
    const start = spec.mode === 'pty' ? startPtyProcess : startPipeProcess
    return start(command, spec, events, settings)
  }
}
