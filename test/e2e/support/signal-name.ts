/** The signal's name; Bun returns a number for unnamed signals. */
export function signalName(signal: NodeJS.Signals | number | null): string | null {
  return signal === null ? null : String(signal)
}
