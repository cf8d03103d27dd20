import { revealInvisible } from './printable.ts'

/** When pasting several lines needs confirmation. */
export type AskBeforePaste =
  | 'always'
  /** Without bracketed paste mode: a shell would run each line. Any output can turn the mode on, such as that of `cat`. */
  | 'would-run'
  | 'never'

/** A paste that needs confirmation. */
export interface RiskyPaste {
  readonly lines: number
  /** The beginning, with visible stand-ins for invisible characters. */
  readonly preview: string
  /** Control characters that are not sent. */
  readonly leftOut: number
  /** Characters after the preview. */
  readonly notShown: number
}

const PREVIEW_CHARS = 4_000

/**
 * Characters that act as keys: C0 except tab and line breaks, DEL, and C1. The kernel handles some, such as Ctrl-C,
 * before a program sees the paste brackets, and what follows would count as typed.
 */
// oxlint-disable-next-line no-control-regex -- The pattern is about control characters.
const KEYS = /[\u{0}-\u{8}\u{b}\u{c}\u{e}-\u{1f}\u{7f}-\u{9f}]/gu

function isAsked(lines: number, isBracketed: boolean, asks: AskBeforePaste): boolean {
  if (lines < 2 || asks === 'never') return false
  return asks === 'always' || !isBracketed
}

/** Checks whether a paste needs confirmation. One line with a line break counts as typed with Enter. */
export function checkPaste(
  text: string,
  { isBracketed, asks }: { readonly isBracketed: boolean; readonly asks: AskBeforePaste },
): RiskyPaste | undefined {
  const lines = text.replace(/\r?\n$/, '').split(/\r\n|\r|\n/).length
  if (!isAsked(lines, isBracketed, asks)) return undefined
  return {
    lines,
    preview: revealInvisible(text.slice(0, PREVIEW_CHARS)),
    leftOut: text.match(KEYS)?.length ?? 0,
    notShown: Math.max(0, text.length - PREVIEW_CHARS),
  }
}

/** Encodes a paste: line breaks as Enter, without anything that acts as a key or ends the brackets. */
export function preparePaste(text: string, isBracketed: boolean): string {
  const typed = text.replaceAll(KEYS, '').replaceAll(/\r?\n/g, '\r')
  return isBracketed ? `\u{1b}[200~${typed}\u{1b}[201~` : typed
}

/** Maximum base64 length that a program may write to the clipboard. */
const MAX_CLIPBOARD_CHARS = 1024 * 1024

/** The text of an OSC 52 write; undefined for a query, which is never answered. */
export function clipboardText(data: string): string | undefined {
  const [, encoded = ''] = data.split(';')
  if (encoded === '' || encoded === '?' || encoded.length > MAX_CLIPBOARD_CHARS) return undefined
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)))
  } catch {
    // Not base64.
    return undefined
  }
}
