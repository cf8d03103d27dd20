import { type Json, textAt } from './json.ts'

const MAX_TITLE_CHARS = 200

/** Tools that write one file, and the field of their input that names it. */
export const FILE_TOOLS: Readonly<Record<string, string>> = {
  Write: 'file_path',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  NotebookEdit: 'notebook_path',
}

/** The field of a tool's input that says best what the call does. */
const TITLE_FIELDS: Readonly<Record<string, string>> = {
  ...FILE_TOOLS,
  Bash: 'command',
  Read: 'file_path',
  Glob: 'pattern',
  Grep: 'pattern',
  Task: 'description',
  Agent: 'description',
  WebFetch: 'url',
  WebSearch: 'query',
}

/** What a call of a tool does, in one line for people. */
export function titleOf(name: string, input: Json): string {
  const field = Object.hasOwn(TITLE_FIELDS, name) ? TITLE_FIELDS[name] : undefined
  const detail = field === undefined ? undefined : textAt(input, field)
  const title = detail === undefined ? name : `${name}: ${detail.replace(/\s+/g, ' ').trim()}`
  return (title.length > MAX_TITLE_CHARS ? `${title.slice(0, MAX_TITLE_CHARS - 1)}…` : title).toWellFormed()
}
