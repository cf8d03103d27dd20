import { BLANK } from '@sandwire/protocol'
import { printable } from '@sandwire/react'
import { fileTexts } from '../texts/files.ts'

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
/** How control characters are read out. */
const CONTROL_NAMES: Readonly<Record<string, string>> = {
  '\n': fileTexts.spoken['\n'],
  '\r': fileTexts.spoken['\r'],
  '\t': fileTexts.spoken['\t'],
}

/** Control characters and lone surrogates, which stand for bytes that are not UTF-8. */
const UNSEEN = /[\p{Cc}\p{Cs}]/gu
/**
 * Spaces that would go unnoticed: leading, trailing, repeated or unusual ones, and letters that look like one. The ideographic space is not unusual.
 */
const LOST_SPACES = new RegExp(String.raw`(?<=^|\/) +| +(?=\/|$)| {2,}|[^\P{Zs} \u3000]|[${BLANK}]`, 'gu')

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, '0')
}

/** A visible stand-in for a control character, delimited so that it cannot be mistaken for part of the name. */
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
 * A name for display. Control characters and unnoticeable spaces are made visible, since two names may differ only in
 * them; bidirectional controls are removed; an empty result gets a placeholder.
 */
export function displayName(name: string): string {
  const seen = name.replaceAll(LOST_SPACES, (spaces) => '␣'.repeat(Array.from(spaces).length))
  return orPlaceholder(printable(seen.replaceAll(UNSEEN, markOf)))
}

/** A name for screen readers, which would skip the visible stand-ins or spell them out. */
export function spokenName(name: string): string {
  const heard = name.replaceAll(LOST_SPACES, (spaces) =>
    ` (${fileTexts.spoken.space}) `.repeat(Array.from(spaces).length),
  )
  const words = heard.replaceAll(UNSEEN, wordOf)
  return orPlaceholder(printable(words.replaceAll(/ +/g, ' ')))
}

/** A title for display: like a name, but surrounding and repeated spaces are collapsed. */
export function displayTitle(text: string): string {
  return displayName(text.trim().replaceAll(/ +/g, ' '))
}

/** The first paths, one per line, and how many more there are. */
export function formatPaths(paths: readonly string[], max: number): string {
  const more = paths.length - max
  const names = paths.slice(0, max).map(displayName)
  return (more > 0 ? [...names, fileTexts.andMore(more)] : names).join('\n')
}
