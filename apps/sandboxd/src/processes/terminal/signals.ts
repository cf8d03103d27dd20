/** Signals the terminal itself can raise for its foreground group. */
export function isTerminalSignal(name: string): boolean {
  return name === 'SIGINT' || name === 'SIGQUIT' || name === 'SIGTSTP'
}
