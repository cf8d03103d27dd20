/** When a person is asked about a paste of several lines. */
export type AskBeforePaste =
  | 'always'
  /** Where the program has not said that it tells pastes from typing: a shell would run each line. */
  | 'would-run'
  | 'never'

/** A paste that is asked about. */
export interface RiskyPaste {
  readonly lines: number
  /** The beginning, for the question, with signs for what cannot be seen. */
  readonly preview: string
  /** How many control characters are not sent. */
  readonly leftOut: number
  /** How many characters come after the preview. */
  readonly notShown: number
}

const PREVIEW_CHARS = 4_000

/**
 * What a terminal makes of keys and not of text: all of C0 but tab and ends of lines, DEL, and C1. The kernel acts on some of them, such
 * as Ctrl-C, before a program sees the brackets around a paste, and what follows would be typing.
 */
// oxlint-disable-next-line no-control-regex -- Control characters are what it is about.
const KEYS = /[\u{0}-\u{8}\u{b}\u{c}\u{e}-\u{1f}\u{7f}-\u{9f}]/gu
const UNSEEN = /[^\P{C}\t\r\n]|[\p{Zl}\p{Zp}]/gu
const DELETE = 0x7f

/** A sign for a character that cannot be seen: its key, as `<^C>`, or its number. There are pictures of them, which fonts do not have. */
function signOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const isKey = code < 0x20 || code === DELETE
  return isKey ? `<^${String.fromCharCode(code ^ 0x40)}>` : `<U+${code.toString(16).toUpperCase()}>`
}

function isAsked(lines: number, isBracketed: boolean, asks: AskBeforePaste): boolean {
  if (lines < 2 || asks === 'never') return false
  return asks === 'always' || !isBracketed
}

/** Whether a paste is worth a question. One line with an end is as typed with Enter. */
export function checkPaste(
  text: string,
  { isBracketed, asks }: { readonly isBracketed: boolean; readonly asks: AskBeforePaste },
): RiskyPaste | undefined {
  const lines = text.replace(/\r?\n$/, '').split(/\r\n|\r|\n/).length
  if (!isAsked(lines, isBracketed, asks)) return undefined
  return {
    lines,
    preview: text.slice(0, PREVIEW_CHARS).replaceAll(UNSEEN, signOf),
    leftOut: text.match(KEYS)?.length ?? 0,
    notShown: Math.max(0, text.length - PREVIEW_CHARS),
  }
}

/** Pastes as terminals send them: ends of lines as Enter, and nothing that would act as a key or end the brackets around it. */
export function preparePaste(text: string, isBracketed: boolean): string {
  const typed = text.replaceAll(KEYS, '').replaceAll(/\r?\n/g, '\r')
  return isBracketed ? `\u{1b}[200~${typed}\u{1b}[201~` : typed
}

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
