import { printable } from '@sandwire/react'
import { fileTexts } from '../texts/files.ts'

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
/** What is said of characters that have no sound. */
const CONTROL_NAMES: Readonly<Record<string, string>> = {
  '\n': fileTexts.spoken['\n'],
  '\r': fileTexts.spoken['\r'],
  '\t': fileTexts.spoken['\t'],
}

/** Characters without a sign of their own: control characters, and bytes that are no text. */
const UNSEEN = /[\p{Cc}\p{Cs}]/gu
/** Spaces that nobody would see: at the ends of a name, beside another, or of an unusual kind. The ideographic one is a usual one. */
const LOST_SPACES = /(?<=^|\/) +| +(?=\/|$)| {2,}|[^\P{Zs} \u3000]/gu

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, '0')
}

/** What stands for a character that has no sign: marks that every font has, and letters between them, which are not those of the name. */
function markOf(character: string): string {
  return character > '\u00ff' ? '�' : `‹${ESCAPES[character] ?? `\\x${hexOf(character)}`}›`
}

function wordOf(character: string): string {
  if (character > '\u00ff') return ` (${fileTexts.spoken.notText}) `
  const { [character]: word } = CONTROL_NAMES
  return ` (${word ?? fileTexts.spoken.character(hexOf(character))}) `
}

function orPlaceholder(text: string): string {
  return text === '' ? fileTexts.noPrintableName : text
}

/**
 * A name as it may be shown: control characters and spaces that would be lost are seen, since two names can differ in them alone; what
 * turns the direction of text is left out, and what is nothing then still has a place.
 */
export function displayName(name: string): string {
  const seen = name.replaceAll(LOST_SPACES, (spaces) => '␣'.repeat(spaces.length))
  return orPlaceholder(printable(seen.replaceAll(UNSEEN, markOf)))
}

/** A name as it may be read out; what is seen of it would be skipped, or called by the names of its marks. */
export function spokenName(name: string): string {
  const heard = name.replaceAll(LOST_SPACES, (spaces) =>
    ` (${fileTexts.spoken.space}) `.repeat(spaces.length),
  )
  const words = heard.replaceAll(UNSEEN, wordOf)
  return orPlaceholder(printable(words.replaceAll(/ +/g, ' ')))
}

/** Words that somebody chose, such as a title: as a name, but spaces around them mean nothing. */
export function displayTitle(text: string): string {
  return displayName(text.trim().replaceAll(/ +/g, ' '))
}

/** The first of many paths, a line each, and how many more there are. */
export function formatPaths(paths: readonly string[], max: number): string {
  const more = paths.length - max
  const names = paths.slice(0, max).map(displayName)
  return (more > 0 ? [...names, fileTexts.andMore(more)] : names).join('\n')
}
