import { EchoWait, createWaitCalls } from './terminal/echo-wait.ts'
import { INHERIT_OOM_SCORE } from './tree/oom-score.ts'
import { ProcessScanner } from './tree/process-scanner.ts'
import { startPipeProcess } from './pipe/pipe-process.ts'
import {
  DRAIN_BYTES,
  DRAIN_MS,
  HANGUP_MS,
  type StartOptions,
  type StartProcess,
  TERMINATE_MS,
} from './process.ts'
import { startPtyProcess } from './terminal/pty-process.ts'
import { Readiness } from './linux/readiness.ts'
import { fail, isFailure, resolveCommand } from './resolve-command.ts'
import { SAME_USER, type UserContext } from './run-as.ts'
import { TerminalLoop } from './terminal/terminal-reader.ts'

/** Searched for `setsid` when the environment has no PATH. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/local/bin'

/** Starts real processes on this machine. */
export function createStartProcess(
  options: Partial<Omit<StartOptions, 'launcher'>> = {},
  { asUser, launcher }: UserContext = SAME_USER,
): StartProcess {
  const settings = {
    drainMs: DRAIN_MS,
    drainBytes: DRAIN_BYTES,
    hangupMs: HANGUP_MS,
    terminateMs: TERMINATE_MS,
    withOomScore: INHERIT_OOM_SCORE,
    children: new Set<number>(),
    scanner: new ProcessScanner(),
    now: () => performance.now(),
    ...options,
    launcher,
    setsidFile: Bun.which('setsid') ?? Bun.which('setsid', { PATH: SYSTEM_PATH }),
  }
  let terminals: TerminalLoop | undefined
  const startNow: StartProcess = (spec, events) => {
    const command = resolveCommand(spec)
    if (isFailure(command)) return command
    if (spec.mode === 'pipe') return startPipeProcess(command, spec, events, settings)
    terminals ??= openTerminals(settings.now)
    if (terminals === undefined) return fail('spawn_failed', spec.argv[0], 'out of file descriptors')
    return startPtyProcess(command, spec, events, { ...settings, terminals })
  }
  return (spec, events) => asUser(() => startNow(spec, events))
}

function openTerminals(now: () => number): TerminalLoop | undefined {
  const readiness = Readiness.open()
  return readiness && new TerminalLoop(readiness, new EchoWait(createWaitCalls(now)))
}
