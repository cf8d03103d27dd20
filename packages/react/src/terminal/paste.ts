/** What a shell would run at once if this were pasted. */
export interface RiskyPaste {
  readonly lines: number
  /** The beginning, for the question. */
  readonly preview: string
}

const PREVIEW_CHARS = 400

/**
 * Whether a paste is worth a question: it has several lines, and the program has not said that it tells pastes from typing.
 * One line with an end is as typed with Enter.
 */
export function judgePaste(text: string, isBracketed: boolean): RiskyPaste | undefined {
  if (isBracketed) return undefined
  const lines = text.replace(/\r?\n$/, '').split(/\r\n|\r|\n/).length
  return lines < 2 ? undefined : { lines, preview: text.slice(0, PREVIEW_CHARS) }
}

/** Pastes as terminals send them: ends of lines as Enter, and no way for the text to end the brackets around it. */
export function preparePaste(text: string, isBracketed: boolean): string {
  const typed = text.replaceAll(/\r?\n/g, '\r')
  // Without the escape no sequence in it can be one; programs treat the rest as text.
  return isBracketed ? `\u{1b}[200~${typed.replaceAll('\u{1b}', '')}\u{1b}[201~` : typed
}
