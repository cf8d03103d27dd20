import { expect, test } from 'bun:test'
import { defaultKeymap, historyKeymap, indentWithTab } from '@codemirror/commands'
import { foldKeymap } from '@codemirror/language'
import { searchKeymap } from '@codemirror/search'
import { isEditingKey } from './editing-keys.ts'

/** A CodeMirror binding in the notation of commands; undefined without Ctrl and Shift. */
function inOurWords(chord: string, withShift: boolean): string | undefined {
  const parts = chord.split(/-(?!$)/)
  const key = parts.pop() ?? ''
  const isShift = withShift || parts.includes('Shift')
  if (!isShift || !parts.some((part) => ['Mod', 'Ctrl', 'Cmd'].includes(part))) return undefined
  return [
    'Ctrl',
    ...(parts.includes('Alt') ? ['Alt'] : []),
    'Shift',
    key.length === 1 ? key.toUpperCase() : key,
  ].join('+')
}

test('leaves every Ctrl+Shift binding of the editor to it', () => {
  const bindings = [...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap, indentWithTab]
  const chords = bindings.flatMap(({ key, win, linux, mac, shift }) => [
    ...[key, win, linux].flatMap((chord) => inOurWords(chord ?? '', false) ?? []),
    ...(shift === undefined ? [] : [key, win, linux].flatMap((chord) => inOurWords(chord ?? '', true) ?? [])),
    // Bindings with the Mac's own Ctrl are never shortcuts.
    ...(mac?.startsWith('Cmd') === true ? [inOurWords(mac, shift !== undefined) ?? []].flat() : []),
  ])
  expect(chords.length).toBeGreaterThan(8)
  expect(chords.filter((keys) => !isEditingKey(keys, 'editor'))).toEqual([])
})

test('leaves selection keys to fields, and everything else to the page', () => {
  expect(isEditingKey('Ctrl+Shift+ArrowRight', 'field')).toBe(true)
  expect(isEditingKey('Ctrl+Shift+End', 'field')).toBe(true)
  expect(isEditingKey('Ctrl+Shift+P', 'field')).toBe(false)
  expect(isEditingKey('Ctrl+Shift+L', 'field')).toBe(false)
  expect(isEditingKey('Ctrl+Shift+P', 'editor')).toBe(false)
  expect(isEditingKey('Ctrl+Shift+ArrowRight', 'elsewhere')).toBe(false)
})
