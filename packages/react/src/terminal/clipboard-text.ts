/** Longest text that a program may put into the clipboard, in base64. */
const MAX_CLIPBOARD_CHARS = 1024 * 1024

/** Text of an OSC 52 that sets the clipboard; undefined for a question, which is never answered. */
export function clipboardText(data: string): string | undefined {
  const [, encoded = ''] = data.split(';')
  if (encoded === '' || encoded === '?' || encoded.length > MAX_CLIPBOARD_CHARS) return undefined
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)))
  } catch {
    // Not base64: nothing to set.
    return undefined
  }
}
