/**
 * Replies that a terminal sends on its own when a program queries it: device attributes, status and cursor reports, mode
 * reports, window reports, color and clipboard replies, DCS strings, focus events.
 */
const REPLIES = new RegExp(
  [
    '\\x1b\\[[?>=]?[0-9;]*c',
    '\\x1b\\[\\??[0-9;]*n',
    '\\x1b\\[\\??[0-9]+;[0-9]+R',
    '\\x1b\\[\\??[0-9;]+\\$y',
    '\\x1b\\[[0-9;]+t',
    '\\x1b\\[\\?[0-9;]*u',
    '\\x1b\\[[IO]',
    '\\x1b\\][0-9]+;[^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)',
    '\\x1bP[^\\x1b]*\\x1b\\\\',
  ].join('|'),
  'g',
)

/**
 * Removes a terminal's own replies from input. Only the driver's terminal answers queries, so replies of other attachments
 * are dropped before they are sent.
 */
export function withoutTerminalReplies(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(0x1b)) return bytes
  // Latin-1 maps every byte to one character and back, so no byte changes.
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  const rest = text.replace(REPLIES, '')
  return rest.length === text.length ? bytes : Uint8Array.from(rest, (character) => character.charCodeAt(0))
}
