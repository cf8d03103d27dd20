import { constants } from 'node:os'

/** Signals a client may send. Faults (SEGV, BUS, ...) are left out: nobody asks for them on purpose. */
const SIGNAL_NAMES = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGABRT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
  'SIGTERM',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGWINCH',
] as const

export type SignalName = (typeof SIGNAL_NAMES)[number]

const KNOWN: ReadonlySet<string> = new Set(SIGNAL_NAMES)

/** True for a full name such as `SIGINT`; short names and numbers are not accepted. */
export function isSignalName(name: string): name is SignalName {
  return KNOWN.has(name)
}

export function signalNumber(name: SignalName): number {
  return constants.signals[name]
}

/** Signals the terminal itself can raise for its foreground group. */
export function isTerminalSignal(name: SignalName): boolean {
  return name === 'SIGINT' || name === 'SIGQUIT' || name === 'SIGTSTP'
}
