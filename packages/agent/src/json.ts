/** Readers for JSON of a program whose versions differ: what is missing or of another type is undefined, never an error. */

export type Json = Readonly<Record<string, unknown>>

export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function recordAt(source: Json | undefined, name: string): Json | undefined {
  const value = source?.[name]
  return isRecord(value) ? value : undefined
}

export function textAt(source: Json | undefined, name: string): string | undefined {
  const value = source?.[name]
  return typeof value === 'string' ? value : undefined
}

/** A finite number that is not negative. */
export function numberAt(source: Json | undefined, name: string): number | undefined {
  const value = source?.[name]
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

export function recordsAt(source: Json | undefined, name: string): readonly Json[] {
  const value: unknown = source?.[name]
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** The object in a line; undefined when the line is anything else. */
export function parseRecord(line: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isRecord(value) ? value : undefined
  } catch {
    // Not JSON: the caller shows it as text.
    return undefined
  }
}
