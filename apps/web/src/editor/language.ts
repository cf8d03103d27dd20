import { LanguageDescription } from '@codemirror/language'
import { languages } from '@codemirror/language-data'
import type { Extension } from '@codemirror/state'

/** Loads what knows a file's language; nothing when there is none, or it cannot be had: a text is one without colors too. */
export async function languageOf(path: string, known = languages): Promise<Extension> {
  const description = LanguageDescription.matchFilename(known, path.split('/').pop() ?? path)
  if (description === null) return []
  try {
    return await description.load()
  } catch {
    // The server is away or has newer files; the next text asks again.
    return []
  }
}
