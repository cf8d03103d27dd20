import { plural } from './counts.ts'

/** Texts of terminals: their connection, how they ended, and the find bar. */
export const terminalTexts = {
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  connectionLost: 'Connection lost.',
  retryNow: ' Reconnecting…',
  retryIn: (seconds: number) => ` Reconnecting in ${seconds} s`,
  detached: 'Detached',
  exited: (code: number | null) => (code === null ? 'Process exited' : `Process exited with code ${code}`),
  killed: (signal: string) => `Process ended by ${signal}`,
  sandboxStopped: 'Sandbox stopped',
  sandboxDestroyed: 'Sandbox destroyed',
  signedOut: 'You were signed out. The session keeps running.',
  accessRemoved: 'Access was removed',
  missing: {
    sandbox_not_found: 'The sandbox was destroyed, or you no longer have access',
    session_not_found: 'The session ended, or you no longer have access',
  },
  /** What to do about an error, by its code. */
  advice: {
    session_gone: 'It ended before this page reconnected.',
    sandbox_stopped: 'Start the sandbox to continue.',
    unauthorized: 'Sign in again.',
    too_many_sessions: 'End a session in this sandbox first.',
  },
  newShell: 'New shell',
  close: 'Close',
  viewOnly: 'View only',

  status: {
    connecting: 'Connecting',
    disconnected: 'Disconnected',
    ended: 'Ended',
    noResponse: 'No response',
    noResponseHint: 'The server has not responded for a few seconds',
    roundTrip: 'Round-trip time',
    roles: { driver: 'In control', collaborator: 'Can type', viewer: 'View only' },
  },

  find: {
    label: 'Find in terminal',
    placeholder: 'Find',
    none: 'No results',
    atLeast: (count: number) => `${count}+ results`,
    count: (count: number) => plural(count, 'result'),
    position: (at: number, count: number) => `${at} of ${count}`,
    previous: 'Previous (Enter)',
    next: 'Next (Shift+Enter)',
    close: 'Close',
  },
  keys: {
    title: 'Terminal keys',
    names: {
      escape: 'Esc',
      tab: 'Tab',
      left: 'Left',
      up: 'Up',
      down: 'Down',
      right: 'Right',
      pipe: 'Pipe',
      slash: 'Slash',
      dash: 'Dash',
      tilde: 'Tilde',
    },
    control: 'Ctrl',
    paste: 'Paste',
    cannotPaste: 'Cannot paste',
  },
} as const
