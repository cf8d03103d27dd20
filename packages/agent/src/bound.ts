import { isRecord } from './json.ts'

/** Texts within a tool's input, such as a file that it writes. */
const MAX_FIELD_CHARS = 8 * 1024

export interface BoundText {
  readonly text: string
  readonly omittedChars: number
}

/** For the note of what was omitted, so that a bound text is within the bound too. */
const NOTE_CHARS = 40

/** Beginning and end of a text that is longer than `maxChars`, which is at least 100. */
export function boundText(text: string, maxChars: number): BoundText {
  if (text.length <= maxChars) return { text, omittedChars: 0 }
  const kept = maxChars - NOTE_CHARS
  const head = text.slice(0, Math.floor(kept * 0.75))
  const tail = text.slice(text.length - Math.floor(kept * 0.25))
  const omittedChars = text.length - head.length - tail.length
  return { text: `${head}\n[${omittedChars} characters omitted]\n${tail}`.toWellFormed(), omittedChars }
}

/** A JSON value whose texts are cut; one that is still longer than `maxChars` as JSON is replaced by its beginning. */
export function boundValue(value: unknown, maxChars: number): unknown {
  const cut = cutTexts(value, MAX_FIELD_CHARS)
  const json = JSON.stringify(cut) ?? 'null'
  return json.length <= maxChars ? cut : { omitted: boundText(json, maxChars / 2).text }
}

/** A JSON value in which every text has at most about `maxChars`. */
export function cutTexts(value: unknown, maxChars: number): unknown {
  if (typeof value === 'string') return boundText(value, maxChars).text
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, maxChars))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutTexts(item, maxChars)]))
}
