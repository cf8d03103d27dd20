import { LanguageDescription } from '@codemirror/language'
import { languages } from '@codemirror/language-data'
import type { Extension } from '@codemirror/state'

/** Loads the language support for a file; empty when there is none or it cannot be loaded. */
export async function languageOf(path: string, known = languages): Promise<Extension> {
  const description = LanguageDescription.matchFilename(known, path.split('/').pop() ?? path)
  if (description === null) return []
  try {
    return await description.load()
  } catch {
    // The server is unreachable or has a newer build; the next file retries.
    return []
  }
}
