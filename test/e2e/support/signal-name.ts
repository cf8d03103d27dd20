/** The signal as text; Bun gives a number for those without a name. */
export function signalName(signal: NodeJS.Signals | number | null): string | null {
  return signal === null ? null : String(signal)
}
