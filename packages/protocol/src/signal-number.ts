/** Linux signal numbers by name; the same on every architecture Sandwire runs on. */
const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGSTKFLT: 16,
  SIGCHLD: 17,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGURG: 23,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGVTALRM: 26,
  SIGPROF: 27,
  SIGWINCH: 28,
  SIGIO: 29,
  SIGPWR: 30,
  SIGSYS: 31,
}

/** Real-time signals have no names of their own: `SIG34` to `SIG64`. */
const REAL_TIME = /^SIG(3[2-9]|[45][0-9]|6[0-4])$/

/** The number of a signal, or `undefined` when the name is not one. */
export function signalNumber(name: string): number | undefined {
  if (Object.hasOwn(SIGNALS, name)) return SIGNALS[name]
  const realTime = REAL_TIME.exec(name)?.[1]
  return realTime === undefined ? undefined : Number(realTime)
}
