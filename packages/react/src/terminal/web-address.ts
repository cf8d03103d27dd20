/** The address of a link that may be opened from a terminal: what a program prints is not to be trusted with more. */
export function webAddress(text: string): string | undefined {
  try {
    const url = new URL(text)
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined
  } catch {
    // Not an address at all.
    return undefined
  }
}
