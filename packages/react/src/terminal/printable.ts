import { INVISIBLE } from '@sandwire/protocol'

/** Default length limit. */
const MAX_CHARS = 120

/** Makes untrusted text safe to show outside a terminal: one line without invisible characters. */
export function printable(text: string, maxChars = MAX_CHARS): string {
  return text.replaceAll(INVISIBLE, '').trim().slice(0, maxChars)
}
