import { revealInvisible } from '@sandwire/react'

/** Input of a tool as it is shown. */
export type ShownInput =
  | { readonly kind: 'none' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'edits'; readonly path: string; readonly edits: readonly Edit[] }

export interface Edit {
  readonly before: string
  readonly after: string
}

type Fields = Readonly<Record<string, unknown>>

function textOf(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? revealInvisible(value) : ''
}

function editOf(value: unknown): Edit {
  const fields = typeof value === 'object' && value !== null ? (value as Fields) : {}
  return { before: textOf(fields, 'old_string'), after: textOf(fields, 'new_string') }
}

/** Shows edits as lines and commands as text, and everything else as JSON. The user may have to approve it, so nothing in it is invisible. */
export function describeInput(name: string, input: Fields): ShownInput {
  const path = textOf(input, 'file_path')
  if (name === 'Edit') return { kind: 'edits', path, edits: [editOf(input)] }
  if (name === 'MultiEdit' && Array.isArray(input['edits']))
    return { kind: 'edits', path, edits: input['edits'].map(editOf) }
  if (name === 'Write')
    return { kind: 'edits', path, edits: [{ before: '', after: textOf(input, 'content') }] }
  if (name === 'Bash' && textOf(input, 'command') !== '')
    return { kind: 'text', text: textOf(input, 'command') }
  if (Object.keys(input).length === 0) return { kind: 'none' }
  return { kind: 'text', text: revealInvisible(JSON.stringify(input, undefined, 2)) }
}
